//! The decoder as the Neural Engine takes it: channels first.
//!
//! - Activations are (1, channels, 1, tokens) and layers of weights are 1×1 convolutions.
//! - Attention is spelled out for each key-value head; masks are finite; norms divide before they square.
//! - One state holds the cache: (layers · 2 · key-value heads, 1, context, head size), the keys of a layer before its values,
//!   rows padded with zeros to a power of two of at least 32. All its axes but the first are then powers of two.
//! - The vocabulary is split, so that no axis exceeds 16384.
//! - Positions become masks, angles and places in the cache before the first layer, on the CPU; nothing leaves the Neural
//!   Engine after that.
//!
//! What each of these is for is said by the rules of [`lint`](crate::lint).

use anemone_mil::types::{DType, StaticType};
use anemone_mil::{Function, ValueId};

use crate::block::attention::columns;
use crate::block::layers::{Parts, layers};
use crate::block::mask::causal_masks;
use crate::block::rope::rotations;
use crate::error::Result;
use crate::net::{Begin, Net};
use crate::source::config::Config;
use crate::source::family::Activation;

mod attention;
mod channels;
mod head;
mod norm;
mod weights;

use attention::{Shared, attention};
use channels::{columns_of_angles, masks_of_heads};
use norm::rms_norm;

pub(crate) fn build(mut net: Net<'_>) -> Result<Function> {
    let result = result(&mut net)?;
    let mut function = net.finish_part(result)?;
    weights::give_four_axes(&mut function)?;
    Ok(function)
}

/// The cache of so many layers.
pub(crate) fn cache_type(config: &Config, layers: usize, context: usize) -> StaticType {
    StaticType::new(DType::F16, &[2 * layers * config.kv_heads, 1, context, row_size(config.head_dim)])
}

/// Elements of a row of the cache: a head, padded.
fn row_size(head_dim: usize) -> usize {
    head_dim.next_power_of_two().max(32)
}

/// The logits, or what the next part takes: rows (1, width, hidden size), whose last axis the Neural Engine likes.
fn result(net: &mut Net<'_>) -> Result<ValueId> {
    let (config, part) = (net.config(), net.part.clone());
    let (begin, positions) = net.begin();
    let shared = match positions.filter(|_| !part.layers.is_empty()) {
        None => None,
        Some(positions) => {
            let cache = net.cache(&cache_type(config, part.layers.len(), net.context));
            let (start, stop) = columns(net, positions)?;
            let masks = causal_masks(net, positions, start)?;
            let masks = masks_of_heads(net, masks)?;
            let rotations = rotations(net, positions)?;
            let angles = columns_of_angles(net, rotations)?;
            Some(Shared { cache, start, stop, masks, angles })
        }
    };

    let rows = match begin {
        Begin::Ids(ids) => head::embedding(net, ids)?,
        Begin::Rows(rows) => rows,
    };
    if part.layers.is_empty() && !part.head {
        return Ok(rows);
    }
    let mut x = head::channels_of_rows(net, rows)?;
    if let Some(shared) = shared {
        let attention = |net: &mut Net<'_>, x, layer, name: &str| attention(net, x, &shared, layer, name);
        x = layers(net, x, Parts { norm: rms_norm, attention, mlp: gated_mlp })?;
    }
    if !part.head {
        return head::rows_of_channels(net, x);
    }
    let last = match positions {
        Some(positions) => head::last_token(net, x, positions)?,
        None => x,
    };
    let normed = rms_norm(net, last, "model.norm", config.residual_scale)?;
    head::logits(net, normed)
}

/// The gated feed-forward part; `silu` is spelled with `sigmoid`.
fn gated_mlp(net: &mut Net<'_>, x: ValueId, name: &str) -> Result<ValueId> {
    let gate = channels::linear(net, x, &format!("{name}.gate_proj"))?;
    let up = channels::linear(net, x, &format!("{name}.up_proj"))?;
    let active = match net.config().family.layer.activation {
        Activation::Silu => {
            let sigmoid = net.op("sigmoid", &format!("{name}_sigmoid"), &[("x", gate.into())])?;
            net.op("mul", &format!("{name}_silu"), &[("x", gate.into()), ("y", sigmoid.into())])?
        }
        Activation::GeluTanh => {
            let args = [("x", gate.into()), ("mode", "TANH_APPROXIMATION".into())];
            net.op("gelu", &format!("{name}_gelu"), &args)?
        }
    };
    let gated = net.op("mul", &format!("{name}_gated"), &[("x", active.into()), ("y", up.into())])?;
    channels::linear(net, gated, &format!("{name}.down_proj"))
}
