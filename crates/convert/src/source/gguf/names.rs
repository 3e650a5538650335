//! The names that GGUF files give to tensors, and those of Hugging Face, which are the canonical ones here.

use crate::source::family::Family;

/// Outside the layers: GGUF, Hugging Face.
const GLOBAL: &[(&str, &str)] =
    &[("token_embd", "model.embed_tokens"), ("output_norm", "model.norm"), ("output", "lm_head")];

/// In a layer of any family, behind `blk.N.` or `model.layers.N.`: GGUF, Hugging Face.
const LAYER: &[(&str, &str)] = &[
    ("attn_q", "self_attn.q_proj"),
    ("attn_k", "self_attn.k_proj"),
    ("attn_v", "self_attn.v_proj"),
    ("attn_output", "self_attn.o_proj"),
    ("attn_q_norm", "self_attn.q_norm"),
    ("attn_k_norm", "self_attn.k_norm"),
    ("ffn_gate", "mlp.gate_proj"),
    ("ffn_up", "mlp.up_proj"),
    ("ffn_down", "mlp.down_proj"),
];

/// The Hugging Face name of a GGUF tensor; `None` if the family has none of that name.
pub(crate) fn to_hugging_face(name: &str, family: &Family) -> Option<String> {
    let (stem, suffix) = name.rsplit_once('.')?;
    if !matches!(suffix, "weight" | "bias") {
        return None;
    }
    if let Some((layer, part)) = stem.strip_prefix("blk.").and_then(|rest| rest.split_once('.')) {
        let layer: u32 = layer.parse().ok()?;
        return Some(format!("model.layers.{layer}.{}.{suffix}", in_layer(part, family)?));
    }
    let (_, part) = GLOBAL.iter().find(|(gguf, _)| *gguf == stem)?;
    Some(format!("{part}.{suffix}"))
}

fn in_layer(part: &str, family: &Family) -> Option<&'static str> {
    if let Some(fused) = family.fused.iter().find(|fused| fused.gguf == part) {
        return Some(fused.name);
    }
    match part {
        "attn_norm" => family.layer.before_attention,
        "post_attention_norm" => family.layer.after_attention,
        "ffn_norm" => family.layer.before_mlp,
        "post_ffw_norm" => family.layer.after_mlp,
        _ => LAYER.iter().find(|(gguf, _)| *gguf == part).map(|(_, name)| *name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_both_worlds() {
        for (family, gguf, expected) in [
            ("llama", "token_embd.weight", Some("model.embed_tokens.weight")),
            ("llama", "output.weight", Some("lm_head.weight")),
            ("llama", "blk.12.attn_q.bias", Some("model.layers.12.self_attn.q_proj.bias")),
            ("llama", "blk.0.ffn_norm.weight", Some("model.layers.0.post_attention_layernorm.weight")),
            ("llama", "blk.0.post_ffw_norm.weight", None),
            ("llama", "rope_freqs.weight", None),
            ("llama", "blk.x.attn_q.weight", None),
            ("llama", "blk.1.attn_q.scale", None),
            ("llama", "blk.1", None),
            ("gemma2", "blk.0.ffn_norm.weight", Some("model.layers.0.pre_feedforward_layernorm.weight")),
            ("gemma3", "blk.3.attn_k_norm.weight", Some("model.layers.3.self_attn.k_norm.weight")),
            ("olmo2", "blk.0.attn_norm.weight", None),
            ("phi3", "blk.0.attn_qkv.weight", Some("model.layers.0.self_attn.qkv_proj.weight")),
            ("phi3", "blk.0.ffn_up.weight", Some("model.layers.0.mlp.gate_up_proj.weight")),
        ] {
            let family = crate::arch::FAMILIES.iter().find(|f| f.name == family).unwrap();
            assert_eq!(to_hugging_face(gguf, family).as_deref(), expected, "{} {gguf}", family.name);
        }
    }
}
