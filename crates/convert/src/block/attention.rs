//! Attention of grouped query heads over the cache, which the layer's new keys and values are written to first.

use anemone_mil::ValueId;

use super::mask::Masks;
use super::norm::rms_norm;
use super::rope::{Rotations, rotate};
use super::softcap::softcap;
use crate::error::Result;
use crate::net::{Net, int};
use crate::part::Kv;
use crate::source::family::QkNorm;

/// What all layers of one call share.
#[derive(Clone, Copy)]
pub(crate) struct Shared {
    pub(crate) cache: ValueId,
    /// Position of the first token, (1).
    pub(crate) start: ValueId,
    /// Position after the last column that is written, (1).
    pub(crate) stop: ValueId,
    /// Added to the scores.
    pub(crate) masks: Masks,
    pub(crate) rotations: Rotations,
}

/// The positions of the columns that a call writes.
pub(crate) fn columns(net: &mut Net<'_>, positions: ValueId) -> Result<(ValueId, ValueId)> {
    let args = [("x", positions.into()), ("begin", [0].into()), ("end", [1].into())];
    let start = net.op("slice_by_index", "cache_start", &args)?;
    let stop = net.op("add", "cache_stop", &[("x", start.into()), ("y", int(net.width).into())])?;
    Ok((start, stop))
}

/// Self-attention of layer `layer` on `x` (1, width, hidden size). New values for a cache that the host keeps join `new_values`;
/// keys lie before all of them, and join the columns at once.
pub(crate) fn attention(
    net: &mut Net<'_>,
    x: ValueId,
    shared: Shared,
    new_values: &mut Vec<ValueId>,
    layer: usize,
    name: &str,
) -> Result<ValueId> {
    let c = net.config();
    let (heads, kv_heads, size, layers) = (c.heads, c.kv_heads, c.head_dim, net.part.layers.len());
    let (width, row) = (net.width, net.part.index(layer));
    let norm = c.family.layer.qk_norm;
    let mut q = projection(net, x, heads, norm, name, "q")?;
    let mut k = projection(net, x, kv_heads, norm, name, "k")?;
    let v = projection(net, x, kv_heads, QkNorm::None, name, "v")?;
    if let Some(rotation) = shared.rotations.of_layer(net, layer) {
        q = rotate(net, q, rotation, -1, &format!("{name}_q"))?;
        k = rotate(net, k, rotation, -1, &format!("{name}_k"))?;
    }
    let (keys_name, values_name) = (format!("{name}_past_keys"), format!("{name}_past_values"));
    let (keys, values) = match net.kv {
        Kv::State => {
            write_columns(net, k, shared, row, &format!("{name}_keys"))?;
            let cache = write_columns(net, v, shared, layers + row, &format!("{name}_values"))?;
            (read_layer(net, cache, row, &keys_name)?, read_layer(net, cache, layers + row, &values_name)?)
        }
        Kv::Io => {
            net.columns.push(k);
            new_values.push(v);
            let keys = read_layer(net, shared.cache, row, &keys_name)?;
            let keys = net.concat(&[keys, k], 2, &format!("{name}_all_keys"))?;
            let values = read_layer(net, shared.cache, layers + row, &values_name)?;
            (keys, net.concat(&[values, v], 2, &format!("{name}_all_values"))?)
        }
    };

    // The query heads of one group lie below one another, so that keys and values need no repetition.
    let scale = Net::half(c.attention_scale as f32);
    let q = net.op("mul", &format!("{name}_q_scaled"), &[("x", q.into()), ("y", scale)])?;
    let group = heads / kv_heads;
    let rows = group * width;
    let q = net.reshape(q, &format!("{name}_q_groups"), &[1, kv_heads, rows, size])?;
    let transposed = [("x", q.into()), ("y", keys.into()), ("transpose_x", false.into()), ("transpose_y", true.into())];
    let scores = net.op("matmul", &format!("{name}_scores"), &transposed)?;
    let scores = match c.attention_softcap {
        Some(cap) => softcap(net, scores, cap, &format!("{name}_capped"))?,
        None => scores,
    };
    let (seen, mask) = (net.shape(keys)[2], shared.masks.of_layer(net, layer));
    let scores = net.reshape(scores, &format!("{name}_scores_heads"), &[kv_heads, group, width, seen])?;
    let masked = net.op("add", &format!("{name}_masked"), &[("x", scores.into()), ("y", mask.into())])?;
    let weights = net.op("softmax", &format!("{name}_weights"), &[("x", masked.into()), ("axis", (-1).into())])?;
    let weights = net.reshape(weights, &format!("{name}_weights_groups"), &[1, kv_heads, rows, seen])?;
    let plain =
        [("x", weights.into()), ("y", values.into()), ("transpose_x", false.into()), ("transpose_y", false.into())];
    let mixed = net.op("matmul", &format!("{name}_mixed"), &plain)?;
    let mixed = net.reshape(mixed, &format!("{name}_mixed_heads"), &[1, heads, width, size])?;
    let mixed =
        net.op("transpose", &format!("{name}_mixed_tokens"), &[("x", mixed.into()), ("perm", [0, 2, 1, 3].into())])?;
    let mixed = net.reshape(mixed, &format!("{name}_mixed_flat"), &[1, width, heads * size])?;
    net.linear(mixed, &format!("{name}.o_proj"))
}

/// Queries, keys or values (`which`) of `x`, normed as `norm` says, split into heads: (1, heads, width, head size).
pub(crate) fn projection(
    net: &mut Net<'_>,
    x: ValueId,
    heads: usize,
    norm: QkNorm,
    name: &str,
    which: &str,
) -> Result<ValueId> {
    let (width, size) = (net.width, net.config().head_dim);
    let (tensor, norm_name) = (format!("{name}.{which}_proj"), format!("{name}.{which}_norm"));
    let mut y = net.linear(x, &tensor)?;
    if norm == QkNorm::Whole {
        y = rms_norm(net, y, &norm_name, 1.0)?;
    }
    let y = net.reshape(y, &format!("{tensor}_heads"), &[1, width, heads, size])?;
    let by_head = [("x", y.into()), ("perm", [0, 2, 1, 3].into())];
    let y = net.op("transpose", &format!("{tensor}_by_head"), &by_head)?;
    if norm == QkNorm::Heads { rms_norm(net, y, &norm_name, 1.0) } else { Ok(y) }
}

/// Writes `columns` (1, heads, width, size) at the call's positions of row `row` of the cache; the cache afterwards.
fn write_columns(net: &mut Net<'_>, columns: ValueId, shared: Shared, row: usize, name: &str) -> Result<ValueId> {
    let shape = net.shape(columns);
    let (heads, size) = (int(shape[1]), int(shape[3]));
    let row = int(row);
    let mut corner = |suffix: &str, row: i32, head: i32, position: ValueId, dim: i32| {
        let before = net.f.constant(&format!("{name}_{suffix}_before"), [row, head].into());
        let after = net.f.constant(&format!("{name}_{suffix}_after"), [dim].into());
        let values = [before, position, after];
        let args = [("values", values.into()), ("axis", 0.into()), ("interleave", false.into())];
        net.op("concat", &format!("{name}_{suffix}"), &args)
    };
    let begin = corner("begin", row, 0, shared.start, 0)?;
    let end = corner("end", row + 1, heads, shared.stop, size)?;
    let old = net.op("read_state", &format!("{name}_old"), &[("input", shared.cache.into())])?;
    let new = net.op(
        "slice_update",
        &format!("{name}_new"),
        &[("x", old.into()), ("update", columns.into()), ("begin", begin.into()), ("end", end.into())],
    )?;
    net.write_state(&format!("{name}_write"), shared.cache, new)?;
    net.op("read_state", name, &[("input", shared.cache.into())])
}

/// Row `row` of the cache: (1, heads, context, size).
fn read_layer(net: &mut Net<'_>, cache: ValueId, row: usize, name: &str) -> Result<ValueId> {
    let shape = net.shape(cache);
    let row = int(row);
    let end = [row + 1, int(shape[1]), int(shape[2]), int(shape[3])];
    net.op("slice_by_index", name, &[("x", cache.into()), ("begin", [row, 0, 0, 0].into()), ("end", end.into())])
}
