//! Llama and its kin: pre-norm layers of rotary grouped-query attention and a gated feed-forward layer.

use anemone_mil::types::DType;
use anemone_mil::{Function, ValueId};

use crate::block::attention::{Shared, attention, columns};
use crate::block::embedding::{embedding, last_token};
use crate::block::mask::causal_mask;
use crate::block::mlp::gated_mlp;
use crate::block::norm::rms_norm;
use crate::block::rope::rotation;
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
    let mask = causal_mask(net, positions, config.sliding_window)?;
    let rotation = rotation(net, positions)?;
    let shared = Shared { cache, start, stop, mask, rotation };

    let mut x = embedding(net, ids)?;
    for layer in 0..config.layers {
        let name = format!("model.layers.{layer}");
        let normed = rms_norm(net, x, &format!("{name}.input_layernorm"))?;
        let attended = attention(net, normed, shared, layer, &format!("{name}.self_attn"))?;
        x = net.op("add", &format!("{name}_attended"), &[("x", x.into()), ("y", attended.into())])?;
        let normed = rms_norm(net, x, &format!("{name}.post_attention_layernorm"))?;
        let fed = gated_mlp(net, normed, &format!("{name}.mlp"))?;
        x = net.op("add", &format!("{name}_fed"), &[("x", x.into()), ("y", fed.into())])?;
    }
    let last = last_token(net, x, positions)?;
    let normed = rms_norm(net, last, "model.norm")?;
    let head = net.matrix("lm_head.weight")?;
    net.op("linear", "logits", &[("x", normed.into()), ("weight", head.into())])
}
