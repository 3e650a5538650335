//! The decoder that all families share: layers of attention and a gated feed-forward part, each with its norms.

use anemone_mil::types::DType;
use anemone_mil::{Function, ValueId};

use crate::block::attention::{Shared, attention, columns};
use crate::block::embedding::{embedding, last_token};
use crate::block::mask::causal_masks;
use crate::block::mlp::gated_mlp;
use crate::block::norm::rms_norm;
use crate::block::rope::rotations;
use crate::block::softcap::softcap;
use crate::error::Result;
use crate::net::Net;

pub(super) fn build(mut net: Net<'_>) -> Result<Function> {
    let logits = logits(&mut net)?;
    Ok(net.finish(&[logits]))
}

fn logits(net: &mut Net<'_>) -> Result<ValueId> {
    let (width, config) = (net.width, net.config());
    let shape = &config.family.layer;
    let ids = net.input("input_ids", DType::I32, &[1, width]);
    let positions = net.input("cache_position", DType::I32, &[width]);
    let cache = net.cache_state();
    let (start, stop) = columns(net, positions)?;
    let masks = causal_masks(net, positions)?;
    let rotations = rotations(net, positions)?;
    let shared = Shared { cache, start, stop, masks, rotations };

    // What is added up over the layers is kept multiplied by this; what is added comes so out of the norms.
    let residual = config.residual_scale;
    let mut x = embedding(net, ids)?;
    for layer in 0..config.layers {
        let name = format!("model.layers.{layer}");
        let read = norm(net, x, &name, shape.before_attention, residual)?;
        let attended = attention(net, read, shared, layer, &format!("{name}.self_attn"))?;
        let attended = norm(net, attended, &name, shape.after_attention, 1.0)?;
        x = net.op("add", &format!("{name}_attended"), &[("x", x.into()), ("y", attended.into())])?;
        let read = norm(net, x, &name, shape.before_mlp, residual)?;
        let fed = gated_mlp(net, read, &format!("{name}.mlp"))?;
        let fed = norm(net, fed, &name, shape.after_mlp, 1.0)?;
        x = net.op("add", &format!("{name}_fed"), &[("x", x.into()), ("y", fed.into())])?;
    }
    let last = last_token(net, x, positions)?;
    let normed = rms_norm(net, last, "model.norm", residual)?;
    let head = net.matrix("lm_head.weight")?;
    let output = |name| (name, [("x", normed.into()), ("weight", head.into())]);
    match config.logit_softcap {
        None => {
            let (name, args) = output("logits");
            net.op("linear", name, &args)
        }
        Some(cap) => {
            let (name, args) = output("logits_uncapped");
            let logits = net.op("linear", name, &args)?;
            softcap(net, logits, cap, "logits")
        }
    }
}

/// The norm called `norm` in layer `layer`, where the family has one.
fn norm(net: &mut Net<'_>, x: ValueId, layer: &str, norm: Option<&str>, scale: f64) -> Result<ValueId> {
    norm.map_or(Ok(x), |norm| rms_norm(net, x, &format!("{layer}.{norm}"), scale))
}
