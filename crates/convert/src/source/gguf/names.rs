//! The names that GGUF files give to tensors, and those of Hugging Face, which are the canonical ones here.

/// Outside the layers: GGUF, Hugging Face.
const GLOBAL: &[(&str, &str)] =
    &[("token_embd", "model.embed_tokens"), ("output_norm", "model.norm"), ("output", "lm_head")];

/// In a layer, behind `blk.N.` or `model.layers.N.`: GGUF, Hugging Face.
const LAYER: &[(&str, &str)] = &[
    ("attn_norm", "input_layernorm"),
    ("attn_q", "self_attn.q_proj"),
    ("attn_k", "self_attn.k_proj"),
    ("attn_v", "self_attn.v_proj"),
    ("attn_output", "self_attn.o_proj"),
    ("ffn_norm", "post_attention_layernorm"),
    ("ffn_gate", "mlp.gate_proj"),
    ("ffn_up", "mlp.up_proj"),
    ("ffn_down", "mlp.down_proj"),
];

/// The Hugging Face name of a GGUF tensor; `None` if the table has none.
pub(crate) fn to_hugging_face(name: &str) -> Option<String> {
    let (stem, suffix) = name.rsplit_once('.')?;
    if !matches!(suffix, "weight" | "bias") {
        return None;
    }
    if let Some((layer, part)) = stem.strip_prefix("blk.").and_then(|rest| rest.split_once('.')) {
        let layer: u32 = layer.parse().ok()?;
        let (_, part) = LAYER.iter().find(|(gguf, _)| *gguf == part)?;
        return Some(format!("model.layers.{layer}.{part}.{suffix}"));
    }
    let (_, part) = GLOBAL.iter().find(|(gguf, _)| *gguf == stem)?;
    Some(format!("{part}.{suffix}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_both_worlds() {
        for (gguf, expected) in [
            ("token_embd.weight", Some("model.embed_tokens.weight")),
            ("output.weight", Some("lm_head.weight")),
            ("blk.12.attn_q.bias", Some("model.layers.12.self_attn.q_proj.bias")),
            ("blk.0.ffn_norm.weight", Some("model.layers.0.post_attention_layernorm.weight")),
            ("rope_freqs.weight", None),
            ("blk.x.attn_q.weight", None),
            ("blk.1.attn_q.scale", None),
            ("blk.1", None),
        ] {
            assert_eq!(to_hugging_face(gguf).as_deref(), expected, "{gguf}");
        }
    }
}
