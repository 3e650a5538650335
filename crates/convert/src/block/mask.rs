//! What each token may see: itself and what stands before it; in some layers no further back than the window.
//!
//! The window is a matter of the mask alone: the cache keeps every position in every layer, so that a conversation can be
//! rewound to any of them.

use anemone_mil::build::Arg;
use anemone_mil::types::DType;
use anemone_mil::{Const, ValueId};

use crate::error::Result;
use crate::net::{MASKED, Net, int};
use crate::part::Kv;

/// The masks to add to scores, each (width, context), or with the new columns behind: 0 where the token at `positions` may look.
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

/// The masks of one call over the whole cache. Where the host keeps the cache, over what it holds before `start`, and then over
/// the new columns: (width, context + width).
pub(crate) fn causal_masks(net: &mut Net<'_>, positions: ValueId, start: ValueId) -> Result<Masks> {
    let all: Vec<i64> = (0..net.context as i64).collect();
    let all = net.f.constant("cache_positions", Const::ints(DType::I32, &[net.context], &all));
    let number = |n| int(n).into();
    match net.kv {
        Kv::State => masks_over(net, all, positions, number),
        Kv::Io => {
            let held = net.op("less", "mask_held", &[("x", all.into()), ("y", start.into())])?;
            let past = masks_within(net, all, positions, Some(held), number)?;
            let windows: Vec<Option<usize>> = net.part.layers.clone().map(|layer| window(net, layer)).collect();
            let size = windows.into_iter().flatten().next().unwrap_or(usize::MAX);
            let full = past.full.map(|mask| with_new(net, mask, usize::MAX, "mask")).transpose()?;
            let window = past.window.map(|mask| with_new(net, mask, size, "window_mask")).transpose()?;
            Ok(Masks { full, window })
        }
    }
}

/// A mask with that of the new columns behind it. Those are told by their places: the positions of a call of fewer tokens
/// than its width repeat.
fn with_new(net: &mut Net<'_>, past: ValueId, window: usize, name: &str) -> Result<ValueId> {
    let width = net.width;
    let seen = |row: usize, column: usize| column <= row && row - column < window;
    let new = (0..width * width).map(|i| if seen(i / width, i % width) { 0.0 } else { MASKED });
    let new = Const::floats(DType::F16, &[width, width], &new.collect::<Vec<_>>());
    let new = net.f.constant(&format!("{name}_new"), new);
    net.concat(&[past, new], 1, &format!("{name}_with_new"))
}

/// The masks of one call over the positions `all` of the cache; `number` gives a constant of the type of positions.
pub(crate) fn masks_over(
    net: &mut Net<'_>,
    all: ValueId,
    positions: ValueId,
    number: impl Fn(usize) -> Arg,
) -> Result<Masks> {
    masks_within(net, all, positions, None, number)
}

/// The same, with nothing seen of the cache but what is `held` (broadcast over tokens), if that is given.
fn masks_within(
    net: &mut Net<'_>,
    all: ValueId,
    positions: ValueId,
    held: Option<ValueId>,
    number: impl Fn(usize) -> Arg,
) -> Result<Masks> {
    let windows: Vec<Option<usize>> = net.part.layers.clone().map(|layer| window(net, layer)).collect();
    let column = net.op("expand_dims", "position_column", &[("x", positions.into()), ("axes", [1].into())])?;
    let past = net.op("less_equal", "mask_past", &[("x", all.into()), ("y", column.into())])?;
    let past = match held {
        Some(held) => net.op("logical_and", "mask_past_held", &[("x", past.into()), ("y", held.into())])?,
        None => past,
    };
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
