//! Attention, spelled out for each key-value head over the cache.

use anemone_mil::types::DType;
use anemone_mil::{Const, ValueId};

use super::channels::linear;
use super::norm::{head_norm, rms_norm};
use super::row_size;
use crate::block::mask::Masks;
use crate::block::rope::{Rotation, Rotations, rotate};
use crate::block::softcap::softcap;
use crate::error::Result;
use crate::net::{Net, int};
use crate::part::Kv;
use crate::source::family::QkNorm;

/// What all layers of one call share.
pub(super) struct Shared {
    pub(super) cache: ValueId,
    /// Position of the first token, (1).
    pub(super) start: ValueId,
    /// Position after the last column that is written, (1).
    pub(super) stop: ValueId,
    /// Added to the scores, (1, 1, tokens, context, or with the new columns behind it).
    pub(super) masks: Masks,
    /// For heads of (1, heads, head size, tokens).
    pub(super) angles: Rotations,
}

/// Self-attention of layer `layer` on `x` (1, hidden size, 1, tokens).
pub(super) fn attention(net: &mut Net<'_>, x: ValueId, shared: &Shared, layer: usize, name: &str) -> Result<ValueId> {
    let c = net.config();
    let (heads, kv_heads, size, width, context) = (c.heads, c.kv_heads, c.head_dim, net.width, net.context);
    let rotation = shared.angles.of_layer(net, layer);
    let q = query_or_key(net, x, heads, rotation, name, "q")?;
    let k = query_or_key(net, x, kv_heads, rotation, name, "k")?;
    let v = linear(net, x, &format!("{name}.v_proj"))?;
    let v = net.reshape(v, &format!("{name}.v_proj_heads"), &[1, kv_heads, size, width])?;
    let columns = columns(net, [k, v], name)?;
    let cache = match net.kv {
        Kv::State => Some(write(net, columns, shared, layer, name)?),
        Kv::Io => {
            net.columns.push(columns);
            None
        }
    };

    let scale = Net::half(c.attention_scale as f32);
    let q = net.op("mul", &format!("{name}_q_scaled"), &[("x", q.into()), ("y", scale)])?;
    let q = turn(net, q, &format!("{name}_q_tokens"))?;
    let groups = match kv_heads {
        1 => vec![q],
        _ => {
            let sizes = vec![int(heads / kv_heads); kv_heads];
            let args = [("x", q.into()), ("split_sizes", sizes.as_slice().into()), ("axis", 1.into())];
            net.ops("split", &format!("{name}_q_groups"), &args)?
        }
    };
    let mask = shared.masks.of_layer(net, layer);
    let mut mixed = Vec::with_capacity(kv_heads);
    for (head, q) in groups.into_iter().enumerate() {
        let first = 2 * kv_heads * net.part.index(layer);
        let mut read = |row: usize, what: &str| {
            let name = format!("{name}_{what}_{head}");
            match cache {
                Some(cache) => rows(net, cache, first + row, context, &name),
                // What the host keeps, and behind it what is new.
                None => {
                    let past = rows(net, shared.cache, first + row, context, &format!("{name}_past"))?;
                    let new = rows(net, columns, row, width, &format!("{name}_new"))?;
                    net.concat(&[past, new], 2, &name)
                }
            }
        };
        let (keys, values) = (read(head, "keys")?, read(head + kv_heads, "values")?);
        let product = |x: ValueId, y: ValueId, turned: bool| {
            [("x", x.into()), ("y", y.into()), ("transpose_x", false.into()), ("transpose_y", turned.into())]
        };
        let scores = net.op("matmul", &format!("{name}_scores_{head}"), &product(q, keys, true))?;
        let scores = match net.config().attention_softcap {
            Some(cap) => softcap(net, scores, cap, &format!("{name}_capped_{head}"))?,
            None => scores,
        };
        let args = [("x", scores.into()), ("y", mask.into())];
        let masked = net.op("add", &format!("{name}_masked_{head}"), &args)?;
        let args = [("x", masked.into()), ("axis", (-1).into())];
        let weights = net.op("softmax", &format!("{name}_weights_{head}"), &args)?;
        mixed.push(net.op("matmul", &format!("{name}_mixed_{head}"), &product(weights, values, false))?);
    }
    let mixed = net.concat(&mixed, 1, &format!("{name}_mixed"))?;
    let mixed = turn(net, mixed, &format!("{name}_mixed_channels"))?;
    let mixed = net.reshape(mixed, &format!("{name}_mixed_flat"), &[1, heads * size, 1, width])?;
    linear(net, mixed, &format!("{name}.o_proj"))
}

/// Queries or keys (`which`): projected, normed and rotated where the family does so: (1, heads, head size, tokens).
fn query_or_key(
    net: &mut Net<'_>,
    x: ValueId,
    heads: usize,
    rotation: Option<Rotation>,
    name: &str,
    which: &str,
) -> Result<ValueId> {
    let tensor = format!("{name}.{which}_proj");
    let (norm, norm_name) = (net.config().family.layer.qk_norm, format!("{name}.{which}_norm"));
    let (size, width) = (net.config().head_dim, net.width);
    let mut y = linear(net, x, &tensor)?;
    if norm == QkNorm::Whole {
        y = rms_norm(net, y, &norm_name, 1.0)?;
    }
    y = net.reshape(y, &format!("{tensor}_heads"), &[1, heads, size, width])?;
    if norm == QkNorm::Heads {
        y = head_norm(net, y, &norm_name)?;
    }
    rotation.map_or(Ok(y), |rotation| rotate(net, y, rotation, 2, &format!("{name}_{which}")))
}

/// Keys and values (1, heads, head size, tokens) of a layer as they lie in the cache: (2 · heads, 1, tokens, row size).
fn columns(net: &mut Net<'_>, kv: [ValueId; 2], name: &str) -> Result<ValueId> {
    let (rows, size, width) = (2 * net.config().kv_heads, net.config().head_dim, net.width);
    let row_size = row_size(size);
    let both = net.concat(&kv, 1, &format!("{name}_kv"))?;
    let args = [("x", both.into()), ("perm", [1, 0, 3, 2].into())];
    let mut both = net.op("transpose", &format!("{name}_kv_rows"), &args)?;
    if row_size > size {
        let shape = [rows, 1, width, row_size - size];
        let zeros = Const::floats(DType::F16, &shape, &vec![0.0; shape.iter().product()]);
        let zeros = net.f.constant(&format!("{name}_kv_zeros"), zeros);
        both = net.concat(&[both, zeros], 3, &format!("{name}_kv_padded"))?;
    }
    Ok(both)
}

/// Writes the columns of a layer at the call's positions; the cache afterwards.
fn write(net: &mut Net<'_>, both: ValueId, shared: &Shared, layer: usize, name: &str) -> Result<ValueId> {
    let rows = 2 * net.config().kv_heads;
    let row_size = row_size(net.config().head_dim);
    let first = int(rows * net.part.index(layer));
    let mut corner = |suffix: &str, row: i32, other: i32, position: ValueId, end: i32| {
        let before = net.f.constant(&format!("{name}_{suffix}_before"), [row, other].into());
        let after = net.f.constant(&format!("{name}_{suffix}_after"), [end].into());
        net.concat(&[before, position, after], 0, &format!("{name}_{suffix}"))
    };
    let begin = corner("begin", first, 0, shared.start, 0)?;
    let end = corner("end", first + int(rows), 1, shared.stop, int(row_size))?;
    let old = net.op("read_state", &format!("{name}_old"), &[("input", shared.cache.into())])?;
    let args = [("x", old.into()), ("update", both.into()), ("begin", begin.into()), ("end", end.into())];
    let new = net.op("slice_update", &format!("{name}_new"), &args)?;
    net.write_state(&format!("{name}_write"), shared.cache, new)?;
    net.op("read_state", &format!("{name}_cache"), &[("input", shared.cache.into())])
}

/// Row `row` of the cache or of new columns, as long as there are positions: (1, 1, positions, head size).
fn rows(net: &mut Net<'_>, from: ValueId, row: usize, positions: usize, name: &str) -> Result<ValueId> {
    let end = [int(row) + 1, 1, int(positions), int(net.config().head_dim)];
    let args = [("x", from.into()), ("begin", [int(row), 0, 0, 0].into()), ("end", end.into())];
    net.op("slice_by_index", name, &args)
}

/// The last two axes turned.
fn turn(net: &mut Net<'_>, x: ValueId, name: &str) -> Result<ValueId> {
    net.op("transpose", name, &[("x", x.into()), ("perm", [0, 1, 3, 2].into())])
}
