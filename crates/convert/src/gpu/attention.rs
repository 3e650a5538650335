//! Attention over what two states hold, in one operation where the family's scores allow it.

use anemone_mil::types::DType;
use anemone_mil::{TensorType, ValueId};

use crate::block::attention::projection;
use crate::block::mask::Masks;
use crate::block::rope::{Rotations, rotate};
use crate::block::softcap::softcap;
use crate::error::Result;
use crate::net::{Net, int};
use crate::source::family::QkNorm;

/// What all layers of one call share.
pub(super) struct Shared {
    pub(super) keys: ValueId,
    pub(super) values: ValueId,
    /// Position of the first token, (1).
    pub(super) start: ValueId,
    /// Position after the last, (1).
    pub(super) stop: ValueId,
    /// What `stop` is here.
    pub(super) extent: usize,
    /// Added to the scores, (1, 1, tokens, past + tokens).
    pub(super) masks: Masks,
    pub(super) rotations: Rotations,
}

/// Self-attention of layer `layer` on `x` (1, tokens, hidden size).
pub(super) fn attention(net: &mut Net<'_>, x: ValueId, shared: &Shared, layer: usize, name: &str) -> Result<ValueId> {
    let c = net.config();
    let (heads, kv_heads, size, width) = (c.heads, c.kv_heads, c.head_dim, net.width);
    let (scale, cap) = (c.attention_scale, c.attention_softcap);
    let norm = c.family.layer.qk_norm;
    let mut q = projection(net, x, heads, norm, name, "q")?;
    let mut k = projection(net, x, kv_heads, norm, name, "k")?;
    let v = projection(net, x, kv_heads, QkNorm::None, name, "v")?;
    if let Some(rotation) = shared.rotations.of_layer(net, layer) {
        q = rotate(net, q, rotation, -1, &format!("{name}_q"))?;
        k = rotate(net, k, rotation, -1, &format!("{name}_k"))?;
    }
    let keys = write(net, k, shared.keys, shared, layer, &format!("{name}_keys"))?;
    let values = write(net, v, shared.values, shared, layer, &format!("{name}_values"))?;
    let k = past(net, keys, shared, layer, &format!("{name}_past_keys"))?;
    let v = past(net, values, shared, layer, &format!("{name}_past_values"))?;
    let mask = shared.masks.of_layer(net, layer);

    // The operation divides by the root of the head size; the rest is the model's own.
    let own = if cap.is_none() { scale * (size as f64).sqrt() } else { scale };
    let q = match (own - 1.0).abs() < 1e-6 {
        true => q,
        false => net.op("mul", &format!("{name}_q_scaled"), &[("x", q.into()), ("y", Net::half(own as f32))])?,
    };
    let mixed = match cap {
        None => {
            let args = [("query", q.into()), ("key", k.into()), ("value", v.into()), ("attn_mask", mask.into())];
            net.op("scaled_dot_product_attention", &format!("{name}_mixed"), &args)?
        }
        Some(cap) => {
            let product = |x: ValueId, y: ValueId, turned: bool| {
                [("x", x.into()), ("y", y.into()), ("transpose_x", false.into()), ("transpose_y", turned.into())]
            };
            let scores = net.op("matmul", &format!("{name}_scores"), &product(q, k, true))?;
            let scores = softcap(net, scores, cap, &format!("{name}_capped"))?;
            let masked = net.op("add", &format!("{name}_masked"), &[("x", scores.into()), ("y", mask.into())])?;
            let args = [("x", masked.into()), ("axis", (-1).into())];
            let weights = net.op("softmax", &format!("{name}_weights"), &args)?;
            net.op("matmul", &format!("{name}_mixed"), &product(weights, v, false))?
        }
    };
    let args = [("x", mixed.into()), ("perm", [0, 2, 1, 3].into())];
    let mixed = net.op("transpose", &format!("{name}_mixed_tokens"), &args)?;
    let mixed = net.reshape(mixed, &format!("{name}_mixed_flat"), &[1, width, heads * size])?;
    net.linear(mixed, &format!("{name}.o_proj"))
}

/// Writes `columns` (1, heads, tokens, size) at the call's positions of a layer; the state afterwards.
fn write(
    net: &mut Net<'_>,
    columns: ValueId,
    state: ValueId,
    shared: &Shared,
    layer: usize,
    name: &str,
) -> Result<ValueId> {
    let shape = net.shape(columns);
    let (heads, size) = (int(shape[1]), int(shape[3]));
    let args = [("x", columns.into()), ("axes", [0].into())];
    let columns = net.op("expand_dims", &format!("{name}_layer"), &args)?;
    let begin = corner(net, [int(layer), 0, 0], shared.start, 0, &format!("{name}_begin"))?;
    let end = corner(net, [int(layer) + 1, 1, heads], shared.stop, size, &format!("{name}_end"))?;
    let old = net.op("read_state", &format!("{name}_old"), &[("input", state.into())])?;
    let args = [("x", old.into()), ("update", columns.into()), ("begin", begin.into()), ("end", end.into())];
    let new = net.op("slice_update", &format!("{name}_new"), &args)?;
    net.write_state(&format!("{name}_write"), state, new)?;
    net.op("read_state", name, &[("input", state.into())])
}

/// A corner of a slice: `before`, a position (1), `after`.
fn corner(net: &mut Net<'_>, before: [i32; 3], position: ValueId, after: i32, name: &str) -> Result<ValueId> {
    let before = net.f.constant(&format!("{name}_before"), before.into());
    let after = net.f.constant(&format!("{name}_after"), [after].into());
    let args = [("values", [before, position, after].into()), ("axis", 0.into()), ("interleave", false.into())];
    net.op("concat", name, &args)
}

/// What a layer has in a state up to the last token, repeated for the heads that share it: (1, heads, past + tokens, size).
fn past(net: &mut Net<'_>, cache: ValueId, shared: &Shared, layer: usize, name: &str) -> Result<ValueId> {
    let shape = net.shape(cache);
    let (heads, kv_heads, context, size) = (net.config().heads, shape[2], shape[3], shape[4]);
    let layer = int(layer);
    let args = [
        ("x", cache.into()),
        ("begin", [layer, 0, 0, 0, 0].into()),
        ("end", [layer + 1, 1, int(kv_heads), int(context), int(size)].into()),
        ("squeeze_mask", [true, false, false, false, false].into()),
    ];
    let whole = net.op("slice_by_index", &format!("{name}_layer"), &args)?;
    let before = net.f.constant(&format!("{name}_end_before"), [1, int(kv_heads)].into());
    let after = net.f.constant(&format!("{name}_end_after"), [int(size)].into());
    let args = [("values", [before, shared.stop, after].into()), ("axis", 0.into()), ("interleave", false.into())];
    let end = net.op("concat", &format!("{name}_end"), &args)?;
    // Said once more by the mask, for readers that know no constant inside of `end`.
    let all = [true, true, false, true].into();
    let args = [("x", whole.into()), ("begin", [0, 0, 0, 0].into()), ("end", end.into()), ("end_mask", all)];
    let ty = TensorType::fixed(DType::F16, &[1, kv_heads, shared.extent, size]);
    let past = net.op_typed("slice_by_index", name, &args, ty)?;
    if heads == kv_heads {
        return Ok(past);
    }
    let wide = net.op("expand_dims", &format!("{name}_groups"), &[("x", past.into()), ("axes", [2].into())])?;
    let reps = [1, 1, int(heads / kv_heads), 1, 1];
    let tiled = net.op("tile", &format!("{name}_repeated"), &[("x", wide.into()), ("reps", reps.into())])?;
    net.reshape(tiled, &format!("{name}_heads"), &[1, heads, shared.extent, size])
}
