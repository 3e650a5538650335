//! From token ids to channels, and from the last token's channels to logits. The vocabulary is split into parts that no axis of
//! the Neural Engine is too short for; tied weights are stored once, part by part.

use anemone_mil::types::DType;
use anemone_mil::{Const, TensorType, ValueId};

use super::channels::convolution;
use crate::block::softcap::softcap;
use crate::error::{ConvertError, Result};
use crate::net::{Net, int};
use crate::part::GIVES;

/// Rows of a part at most.
const MOST: usize = 16_384;
/// Parts but the last are multiples of this.
const MULTIPLE: usize = 64;

/// The rows of each part of a vocabulary.
fn parts(rows: usize) -> Vec<std::ops::Range<usize>> {
    let each = rows.div_ceil(rows.div_ceil(MOST).max(1)).next_multiple_of(MULTIPLE).min(MOST);
    (0..rows).step_by(each.max(1)).map(|start| start..(start + each).min(rows)).collect()
}

/// The parts of a matrix of the vocabulary, (rows, hidden size) each. Tied ones are the same values for both uses.
fn split(net: &mut Net<'_>, tensor: &str) -> Result<Vec<ValueId>> {
    let whole = net.source.tensor(tensor)?;
    let parts = parts(whole.rows());
    if parts.len() == 1 {
        return Ok(vec![net.matrix(tensor)?]);
    }
    let one = |(i, rows): (usize, std::ops::Range<usize>)| {
        let part = whole.clone().of_rows(rows).ok_or_else(|| ConvertError::Internal {
            problem: format!("the rows of {} cannot be taken apart", whole.name()),
        })?;
        net.matrix_of(&part.with_name(&format!("{}.{i}", whole.name())))
    };
    parts.into_iter().enumerate().map(one).collect()
}

/// The embedding of `ids` (1, tokens), scaled where the model does so: (1, tokens, hidden size).
pub(super) fn embedding(net: &mut Net<'_>, ids: ValueId) -> Result<ValueId> {
    let rows = match net.config().tie_embeddings && net.part.head {
        true => tied_rows(net, ids)?,
        // On the CPU, which takes tables of any length.
        false => {
            let table = net.matrix("model.embed_tokens.weight")?;
            net.op("gather", "embedding", &[("x", table.into()), ("indices", ids.into()), ("axis", 0.into())])?
        }
    };
    let scale = (net.config().embedding_scale * net.config().residual_scale) as f32;
    match scale == 1.0 {
        true => Ok(rows),
        false => net.op("mul", "embedding_scaled", &[("x", rows.into()), ("y", Net::half(scale))]),
    }
}

/// From (1, tokens, hidden size) to channels: (1, hidden size, 1, tokens).
pub(super) fn channels_of_rows(net: &mut Net<'_>, rows: ValueId) -> Result<ValueId> {
    let (width, hidden) = (net.width, net.config().hidden_size);
    let turned = net.op("transpose", "embedding_turned", &[("x", rows.into()), ("perm", [0, 2, 1].into())])?;
    net.reshape(turned, "embedding_channels", &[1, hidden, 1, width])
}

/// And back.
pub(super) fn rows_of_channels(net: &mut Net<'_>, x: ValueId) -> Result<ValueId> {
    let (width, hidden) = (net.width, net.config().hidden_size);
    let columns = net.reshape(x, "given_columns", &[1, hidden, width])?;
    net.op("transpose", GIVES, &[("x", columns.into()), ("perm", [0, 2, 1].into())])
}

/// Rows of the parts that the logits are computed with. Each part gives the rows that it has and zeros for others; their sum
/// is exact.
fn tied_rows(net: &mut Net<'_>, ids: ValueId) -> Result<ValueId> {
    let (width, hidden) = (net.width, net.config().hidden_size);
    let tables = split(net, "lm_head.weight")?;
    let only = tables.len() == 1;
    let (mut first, mut sum) = (0, None::<ValueId>);
    for (i, table) in tables.into_iter().enumerate() {
        let rows = net.shape(table)[0];
        let mut int_op = |kind: &str, suffix: &str, x: ValueId, y: i32| {
            net.op(kind, &format!("embedding_{suffix}_{i}"), &[("x", x.into()), ("y", y.into())])
        };
        let (local, clipped) = match only {
            true => (ids, ids),
            false => {
                let local = int_op("sub", "local", ids, int(first))?;
                let low = int_op("maximum", "low", local, 0)?;
                (local, int_op("minimum", "index", low, int(rows) - 1)?)
            }
        };
        // The weight will have four axes.
        let args = [("x", table.into()), ("indices", clipped.into()), ("axis", 0.into())];
        let ty = TensorType::fixed(DType::F16, &[1, width, hidden, 1, 1]);
        let picked = net.op_typed("gather", &format!("embedding_rows_{i}"), &args, ty)?;
        let picked = net.reshape(picked, &format!("embedding_part_{i}"), &[1, width, hidden])?;
        let part = match only {
            true => picked,
            false => {
                let args = [("x", local.into()), ("y", clipped.into())];
                let inside = net.op("equal", &format!("embedding_inside_{i}"), &args)?;
                let args = [("x", inside.into()), ("dtype", "fp16".into())];
                let inside = net.op("cast", &format!("embedding_inside_half_{i}"), &args)?;
                let inside = net.reshape(inside, &format!("embedding_inside_column_{i}"), &[1, width, 1])?;
                let args = [("x", picked.into()), ("y", inside.into())];
                net.op("mul", &format!("embedding_own_{i}"), &args)?
            }
        };
        sum = Some(match sum {
            None => part,
            Some(sum) => net.op("add", &format!("embedding_sum_{i}"), &[("x", sum.into()), ("y", part.into())])?,
        });
        first += rows;
    }
    sum.ok_or_else(|| ConvertError::Internal { problem: "a vocabulary without parts".to_owned() })
}

/// Of `hidden` (1, hidden size, 1, tokens), the column of the last token: a call of fewer tokens than the width repeats its last
/// position, so that column lies at the last position less the first. It is picked by a sum over all but itself times zero,
/// for a look-up at run time would leave the Neural Engine.
pub(super) fn last_token(net: &mut Net<'_>, hidden: ValueId, positions: ValueId) -> Result<ValueId> {
    let width = net.width;
    if width == 1 {
        return Ok(hidden);
    }
    let mut at = |name: &str, i: i32| {
        net.op("slice_by_index", name, &[("x", positions.into()), ("begin", [i].into()), ("end", [i + 1].into())])
    };
    let (first, last) = (at("first_position", 0)?, at("last_position", int(width) - 1)?);
    let column = net.op("sub", "last_column", &[("x", last.into()), ("y", first.into())])?;
    let all: Vec<i64> = (0..width as i64).collect();
    let all = net.f.constant("columns", Const::ints(DType::I32, &[width], &all));
    let is_last = net.op("equal", "is_last", &[("x", all.into()), ("y", column.into())])?;
    let is_last = net.op("cast", "is_last_half", &[("x", is_last.into()), ("dtype", "fp16".into())])?;
    let is_last = net.reshape(is_last, "is_last_columns", &[1, 1, 1, width])?;
    let alone = net.op("mul", "last_alone", &[("x", hidden.into()), ("y", is_last.into())])?;
    net.op("reduce_sum", "last_hidden", &[("x", alone.into()), ("axes", [3].into()), ("keep_dims", true.into())])
}

/// Logits (1, 1, vocabulary) of `hidden` (1, hidden size, 1, 1).
pub(super) fn logits(net: &mut Net<'_>, hidden: ValueId) -> Result<ValueId> {
    let tables = split(net, "lm_head.weight")?;
    let mut parts = Vec::with_capacity(tables.len());
    let only = tables.len() == 1;
    for (i, table) in tables.into_iter().enumerate() {
        let rows = net.shape(table)[0];
        let part = convolution(net, hidden, table, None, &format!("logits_channels_{i}"))?;
        let part = match net.config().logit_softcap {
            None => part,
            Some(cap) => softcap(net, part, cap, &format!("logits_capped_{i}"))?,
        };
        let name = if only { "logits".to_owned() } else { format!("logits_{i}") };
        parts.push(net.reshape(part, &name, &[1, 1, rows])?);
    }
    net.concat(&parts, 2, "logits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_the_vocabulary_and_are_short_enough() {
        for rows in [1, 384, 16_384, 16_385, 32_000, 49_152, 128_256, 151_936, 262_144] {
            let parts = parts(rows);
            assert_eq!((parts[0].start, parts[parts.len() - 1].end), (0, rows));
            assert!(parts.windows(2).all(|two| two[0].end == two[1].start));
            assert!(parts.iter().all(|part| !part.is_empty() && part.len() <= MOST), "{rows}: {parts:?}");
        }
        assert_eq!(parts(49_152).len(), 3);
    }
}
