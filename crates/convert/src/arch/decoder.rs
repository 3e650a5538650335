//! The decoder that all families share: layers of attention and a gated feed-forward part, each with its norms.

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
use crate::net::{Begin, Net, cache_type};

pub(super) fn build(mut net: Net<'_>) -> Result<Function> {
    let result = result(&mut net)?;
    net.finish_part(result)
}

/// The logits, or what the next part takes: (1, width, hidden size).
fn result(net: &mut Net<'_>) -> Result<ValueId> {
    let (config, part) = (net.config(), net.part.clone());
    let (begin, positions) = net.begin();
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

    let mut x = match begin {
        Begin::Ids(ids) => embedding(net, ids)?,
        Begin::Rows(rows) => rows,
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
