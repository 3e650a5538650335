//! Llama and its kin: pre-norm layers of rotary grouped-query attention and a gated feed-forward layer.

use anemone_mil::Function;
use anemone_mil::types::DType;

use crate::block::attention::{Shared, attention, columns};
use crate::block::embedding::{embedding, last_token};
use crate::block::mask::causal_mask;
use crate::block::mlp::gated_mlp;
use crate::block::norm::rms_norm;
use crate::block::rope::rotation;
use crate::error::Result;
use crate::net::Net;

pub(super) fn build(mut net: Net<'_>) -> Result<Function> {
    let net_ref = &mut net;
    let width = net_ref.width;
    let config = net_ref.config();
    let ids = net_ref.input("input_ids", DType::I32, &[1, width]);
    let positions = net_ref.input("cache_position", DType::I32, &[width]);
    let cache = net_ref.cache_state();
    let (start, stop) = columns(net_ref, positions)?;
    let mask = causal_mask(net_ref, positions, config.sliding_window)?;
    let rotation = rotation(net_ref, positions)?;
    let shared = Shared { cache, start, stop, mask, rotation };

    let mut x = embedding(net_ref, ids)?;
    for layer in 0..config.layers {
        let name = format!("model.layers.{layer}");
        let normed = rms_norm(net_ref, x, &format!("{name}.input_layernorm"))?;
        let attended = attention(net_ref, normed, shared, layer, &format!("{name}.self_attn"))?;
        x = net_ref.op("add", &format!("{name}_attended"), &[("x", x.into()), ("y", attended.into())])?;
        let normed = rms_norm(net_ref, x, &format!("{name}.post_attention_layernorm"))?;
        let fed = gated_mlp(net_ref, normed, &format!("{name}.mlp"))?;
        x = net_ref.op("add", &format!("{name}_fed"), &[("x", x.into()), ("y", fed.into())])?;
    }
    let last = last_token(net_ref, x, positions)?;
    let normed = rms_norm(net_ref, last, "model.norm")?;
    let head = net_ref.matrix("lm_head.weight")?;
    let logits = net_ref.op("linear", "logits", &[("x", normed.into()), ("weight", head.into())])?;
    Ok(net.finish(&[logits]))
}
