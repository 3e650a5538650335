//! The decoder that all families share: layers of attention and a gated feed-forward part, each with its norms.

use anemone_mil::types::DType;
use anemone_mil::{Function, ValueId};

use crate::block::attention::{Shared, attention, columns};
use crate::block::embedding::{embedding, last_token};
use crate::block::head;
use crate::block::layers::{Parts, layers};
use crate::block::mask::causal_masks;
use crate::block::mlp::gated_mlp;
use crate::block::norm::rms_norm;
use crate::block::rope::rotations;
use crate::error::Result;
use crate::net::Net;

pub(super) fn build(mut net: Net<'_>) -> Result<Function> {
    let logits = logits(&mut net)?;
    Ok(net.finish(&[logits]))
}

fn logits(net: &mut Net<'_>) -> Result<ValueId> {
    let (width, config) = (net.width, net.config());
    let ids = net.input("input_ids", DType::I32, &[1, width]);
    let positions = net.input("cache_position", DType::I32, &[width]);
    let cache = net.cache_state();
    let (start, stop) = columns(net, positions)?;
    let masks = causal_masks(net, positions)?;
    let rotations = rotations(net, positions)?;
    let shared = Shared { cache, start, stop, masks, rotations };

    let x = embedding(net, ids)?;
    let attention = |net: &mut Net<'_>, x, layer, name: &str| attention(net, x, shared, layer, name);
    let x = layers(net, x, Parts { norm: rms_norm, attention, mlp: gated_mlp })?;
    let last = last_token(net, x, positions)?;
    let normed = rms_norm(net, last, "model.norm", config.residual_scale)?;
    head::logits(net, normed)
}
