//! What each token may see: itself and what stands before it; in some layers no further back than the window.
//!
//! The window is a matter of the mask alone: the cache keeps every position in every layer, so that a conversation can be
//! rewound to any of them.

use anemone_mil::build::Arg;
use anemone_mil::types::DType;
use anemone_mil::{Const, ValueId};

use crate::error::Result;
use crate::net::{MASKED, Net, int};

/// The masks to add to scores, each (width, context): 0 where the token at `positions` may look.
#[derive(Clone, Copy)]
pub(crate) struct Masks {
    /// Of layers that see everything before.
    full: Option<ValueId>,
    /// Of layers that see the window.
    window: Option<ValueId>,
}

impl Masks {
    /// That of layer `layer`.
    pub(crate) fn of_layer(&self, net: &Net<'_>, layer: usize) -> ValueId {
        let mask = if window(net, layer).is_some() { self.window } else { self.full };
        mask.expect("there is a mask for each kind of layer that the model has")
    }

    /// Each of them changed.
    pub(crate) fn try_map(self, mut change: impl FnMut(ValueId) -> Result<ValueId>) -> Result<Self> {
        Ok(Self { full: self.full.map(&mut change).transpose()?, window: self.window.map(&mut change).transpose()? })
    }
}

/// How far back layer `layer` looks, where that is less than the context.
fn window(net: &Net<'_>, layer: usize) -> Option<usize> {
    net.config().window(layer).filter(|&window| window < net.context)
}

/// The masks of one call over the whole cache.
pub(crate) fn causal_masks(net: &mut Net<'_>, positions: ValueId) -> Result<Masks> {
    let all: Vec<i64> = (0..net.context as i64).collect();
    let all = net.f.constant("cache_positions", Const::ints(DType::I32, &[net.context], &all));
    masks_over(net, all, positions, |n| int(n).into())
}

/// The masks of one call over the positions `all` of the cache; `number` gives a constant of the type of positions.
pub(crate) fn masks_over(
    net: &mut Net<'_>,
    all: ValueId,
    positions: ValueId,
    number: impl Fn(usize) -> Arg,
) -> Result<Masks> {
    let windows: Vec<Option<usize>> = (0..net.config().layers).map(|layer| window(net, layer)).collect();
    let column = net.op("expand_dims", "position_column", &[("x", positions.into()), ("axes", [1].into())])?;
    let past = net.op("less_equal", "mask_past", &[("x", all.into()), ("y", column.into())])?;
    let full = match windows.contains(&None) {
        true => Some(additive(net, past, "mask")?),
        false => None,
    };
    let Some(window) = windows.into_iter().flatten().next() else { return Ok(Masks { full, window: None }) };
    let first = net.op("sub", "window_start", &[("x", column.into()), ("y", number(window))])?;
    let near = net.op("greater", "window_near", &[("x", all.into()), ("y", first.into())])?;
    let visible = net.op("logical_and", "window_visible", &[("x", past.into()), ("y", near.into())])?;
    Ok(Masks { full, window: Some(additive(net, visible, "window_mask")?) })
}

/// Not by `select`: coremltools takes its type from the alternatives alone, and loses the shape of the condition.
fn additive(net: &mut Net<'_>, visible: ValueId, name: &str) -> Result<ValueId> {
    let hidden = net.op("logical_not", &format!("{name}_hidden"), &[("x", visible.into())])?;
    let hidden = net.op("cast", &format!("{name}_hidden_half"), &[("x", hidden.into()), ("dtype", "fp16".into())])?;
    net.op("mul", name, &[("x", hidden.into()), ("y", Net::half(MASKED))])
}
