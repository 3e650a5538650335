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
use crate::net::{Net, cache_type};
use crate::part::TAKES;

pub(super) fn build(mut net: Net<'_>) -> Result<Function> {
    let result = result(&mut net)?;
    net.finish_part(result)
}

/// The logits, or what the next part takes: (1, width, hidden size).
fn result(net: &mut Net<'_>) -> Result<ValueId> {
    let (width, config, part) = (net.width, net.config(), net.part.clone());
    let ids = net.ids();
    let given = match ids {
        None => Some(net.input(TAKES, DType::F16, &[1, width, config.hidden_size])),
        Some(_) => None,
    };
    let positioned = !part.layers.is_empty() || (part.head && width > 1);
    let positions = positioned.then(|| net.positions());
    let shared = match positions.filter(|_| !part.layers.is_empty()) {
        None => None,
        Some(positions) => {
            let cache = net.cache(&cache_type(config, part.layers.len(), net.context));
            let (start, stop) = columns(net, positions)?;
            let masks = causal_masks(net, positions, start)?;
            let rotations = rotations(net, positions)?;
            Some(Shared { cache, start, stop, masks, rotations })
        }
    };

    let mut x = match (ids, given) {
        (Some(ids), _) => embedding(net, ids)?,
        (None, given) => given.expect("what does not begin with ids is given something else"),
    };
    if let Some(shared) = shared {
        let mut values = Vec::new();
        let attention = |net: &mut Net<'_>, x, layer, name: &str| attention(net, x, shared, &mut values, layer, name);
        x = layers(net, x, Parts { norm: rms_norm, attention, mlp: gated_mlp })?;
        net.columns.extend(values);
    }
    if !part.head {
        return Ok(x);
    }
    let last = match positions {
        Some(positions) => last_token(net, x, positions)?,
        None => x,
    };
    let normed = rms_norm(net, last, "model.norm", config.residual_scale)?;
    head::logits(net, normed)
}
