//! The decoder as the GPU takes it, with the interface that Apple's article on Llama and Hugging Face's swift-transformers
//! expect: inputs `inputIds` (1, tokens) and `causalMask` (1, 1, tokens, past + tokens) of any number of tokens, states
//! `keyCache` and `valueCache` (layers, 1, key-value heads, context, head size), `logits` (1, tokens, vocabulary) of every
//! token, attention in one operation.
//!
//! The mask's last extent says how many tokens there are with those of the past. What it holds is joined with a causal mask
//! made here, since callers exist that fill it with zeros.

use anemone_mil::types::{DType, StaticType};
use anemone_mil::{Function, TensorType, ValueId};

use crate::block::embedding::embedding;
use crate::block::head;
use crate::block::layers::{Parts, layers};
use crate::block::mask::masks_over;
use crate::block::mlp::gated_mlp;
use crate::block::norm::rms_norm;
use crate::block::rope::rotations;
use crate::error::Result;
use crate::net::Net;
use crate::source::config::Config;

mod attention;
mod flexible;

use attention::{Shared, attention};

/// The only function.
pub(crate) const FUNCTION: &str = anemone_mil::model::MAIN;
/// The states.
pub(crate) const STATES: [&str; 2] = ["keyCache", "valueCache"];
/// The inputs.
pub(crate) const INPUTS: [&str; 2] = ["inputIds", "causalMask"];

/// New tokens, and those of the past with them, at which the function is built; what differs is left open. None is 1, for one
/// token could be taken for any number.
const SHAPES: [(usize, usize); 2] = [(2, 5), (3, 7)];
/// The least context: the shapes must fit.
pub(crate) const LEAST_CONTEXT: usize = 8;

/// Builds the function of any number of tokens; `net` makes one under construction for so many.
pub(crate) fn build<'s>(net: impl Fn(usize) -> Net<'s>) -> Result<Function> {
    let [one, other] = SHAPES.map(|(width, extent)| build_at(net(width), extent));
    flexible::merge(one?, &other?)
}

/// One of the states.
pub(crate) fn state_type(config: &Config, context: usize) -> StaticType {
    StaticType::new(DType::F16, &[config.layers, 1, config.kv_heads, context, config.head_dim])
}

fn build_at(mut net: Net<'_>, extent: usize) -> Result<Function> {
    let logits = logits(&mut net, extent)?;
    Ok(net.finish(&[logits]))
}

fn logits(net: &mut Net<'_>, extent: usize) -> Result<ValueId> {
    let (width, config) = (net.width, net.config());
    let ids = net.input(INPUTS[0], DType::I32, &[1, width]);
    let given = net.input(INPUTS[1], DType::F16, &[1, 1, width, extent]);
    let ty = state_type(config, net.context);
    let [keys, values] = STATES.map(|name| net.f.state(name, &ty));
    let (count, stop) = (length(net, ids, 1, "tokens")?, length(net, given, 3, "cache_stop")?);
    let start = net.op("sub", "cache_start", &[("x", stop.into()), ("y", count.into())])?;
    let positions = range(net, start, stop, width, "positions")?;
    let all = counted(net, given)?;
    let single = net.op("cast", "positions_single", &[("x", positions.into()), ("dtype", "fp32".into())])?;
    // Not by a sum: two masks of large numbers together are infinite.
    let masks = masks_over(net, all, single, |n| (n as f32).into())?;
    let masks = masks.try_map(|mask| net.op("minimum", "mask_given", &[("x", given.into()), ("y", mask.into())]))?;
    let rotations = rotations(net, positions)?;
    let shared = Shared { keys, values, start, stop, extent, masks, rotations };

    let x = embedding(net, ids)?;
    let attention = |net: &mut Net<'_>, x, layer, name: &str| attention(net, x, &shared, layer, name);
    let x = layers(net, x, Parts { norm: rms_norm, attention, mlp: gated_mlp })?;
    let normed = rms_norm(net, x, "model.norm", config.residual_scale)?;
    head::logits(net, normed)
}

/// The extent of an axis, (1).
fn length(net: &mut Net<'_>, x: ValueId, axis: i32, name: &str) -> Result<ValueId> {
    let shape = net.op("shape", &format!("{name}_shape"), &[("x", x.into())])?;
    net.op("slice_by_index", name, &[("x", shape.into()), ("begin", [axis].into()), ("end", [axis + 1].into())])
}

/// The positions of a mask's columns, (1, 1, 1, past + tokens), in single floats: ones of its first row, counted. A range of
/// integers would be a constant of another shape for each length.
fn counted(net: &mut Net<'_>, mask: ValueId) -> Result<ValueId> {
    let args = [
        ("x", mask.into()),
        ("begin", [0, 0, 0, 0].into()),
        ("end", [1, 1, 1, 0].into()),
        ("end_mask", [false, false, false, true].into()),
    ];
    let row = net.op("slice_by_index", "mask_row", &args)?;
    let ones = net.op("equal", "mask_columns", &[("x", row.into()), ("y", row.into())])?;
    let ones = net.op("cast", "mask_ones", &[("x", ones.into()), ("dtype", "fp32".into())])?;
    let args = [("x", ones.into()), ("axis", 3.into()), ("exclusive", true.into()), ("reverse", false.into())];
    net.op("cumsum", "cache_positions", &args)
}

/// The integers from `start` (1) up to `stop` (1), `count` of them.
fn range(net: &mut Net<'_>, start: ValueId, stop: ValueId, count: usize, name: &str) -> Result<ValueId> {
    let mut bare =
        |x: ValueId, end: &str| net.op("squeeze", &format!("{name}_{end}"), &[("x", x.into()), ("axes", [0].into())]);
    let (start, stop) = (bare(start, "start")?, bare(stop, "end")?);
    let args = [("start", start.into()), ("end", stop.into()), ("step", 1.into())];
    net.op_typed("range_1d", name, &args, TensorType::fixed(DType::I32, &[count]))
}
