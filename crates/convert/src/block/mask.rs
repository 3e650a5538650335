//! What each token may see: itself and what stands before it, no further back than the window.

use anemone_mil::types::DType;
use anemone_mil::{Const, ValueId};

use crate::error::Result;
use crate::net::{MASKED, Net, int};

/// The mask to add to scores, (width, context): 0 where the token at `positions` may look.
pub(crate) fn causal_mask(net: &mut Net<'_>, positions: ValueId, window: Option<usize>) -> Result<ValueId> {
    let all: Vec<i64> = (0..net.context as i64).collect();
    let all = net.f.constant("cache_positions", Const::ints(DType::I32, &[net.context], &all));
    let column = net.op("expand_dims", "position_column", &[("x", positions.into()), ("axes", [1].into())])?;
    let mut visible = net.op("less_equal", "mask_past", &[("x", all.into()), ("y", column.into())])?;
    if let Some(window) = window.filter(|&w| w < net.context) {
        let first = net.op("sub", "window_start", &[("x", column.into()), ("y", int(window).into())])?;
        let near = net.op("greater", "mask_window", &[("x", all.into()), ("y", first.into())])?;
        visible = net.op("logical_and", "mask_visible", &[("x", visible.into()), ("y", near.into())])?;
    }
    // Not by `select`: coremltools takes its type from the alternatives alone, and loses the shape of the condition.
    let hidden = net.op("logical_not", "mask_hidden", &[("x", visible.into())])?;
    let hidden = net.op("cast", "mask_hidden_half", &[("x", hidden.into()), ("dtype", "fp16".into())])?;
    net.op("mul", "mask", &[("x", hidden.into()), ("y", Net::half(MASKED))])
}
