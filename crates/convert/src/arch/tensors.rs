//! The tensors of a model, from its settings and the shape of its layers; and such shapes that several families have.

use crate::source::config::Config;
use crate::source::family::{Activation, LayerShape, QkNorm, Shapes};

/// Norms before attention and before the feed-forward part, as in Llama.
pub(super) const PRE_NORM: LayerShape = LayerShape {
    before_attention: Some("input_layernorm"),
    after_attention: None,
    before_mlp: Some("post_attention_layernorm"),
    after_mlp: None,
    qk_norm: QkNorm::None,
    activation: Activation::Silu,
};

/// Every tensor by Hugging Face's name, with its shape.
pub(super) fn tensors(config: &Config) -> Shapes {
    let (hidden, ffn, shape) = (config.hidden_size, config.ffn_size, &config.family.layer);
    let (queries, keys) = (config.heads * config.head_dim, config.kv_heads * config.head_dim);
    let mut tensors = vec![("model.embed_tokens.weight".to_owned(), vec![config.vocab_size, hidden])];
    for layer in 0..config.layers {
        let mut add = |part: &str, shape: &[usize]| {
            tensors.push((format!("model.layers.{layer}.{part}"), shape.to_vec()));
        };
        let linears = [
            ("self_attn.q_proj", queries, hidden),
            ("self_attn.k_proj", keys, hidden),
            ("self_attn.v_proj", keys, hidden),
            ("self_attn.o_proj", hidden, queries),
            ("mlp.gate_proj", ffn, hidden),
            ("mlp.up_proj", ffn, hidden),
            ("mlp.down_proj", hidden, ffn),
        ];
        let norms = [shape.before_attention, shape.after_attention, shape.before_mlp, shape.after_mlp];
        norms.iter().flatten().for_each(|norm| add(&format!("{norm}.weight"), &[hidden]));
        let (q_norm, k_norm) = match shape.qk_norm {
            QkNorm::None => (None, None),
            QkNorm::Heads => (Some(config.head_dim), Some(config.head_dim)),
            QkNorm::Whole => (Some(queries), Some(keys)),
        };
        q_norm.iter().for_each(|&size| add("self_attn.q_norm.weight", &[size]));
        k_norm.iter().for_each(|&size| add("self_attn.k_norm.weight", &[size]));
        for (part, outputs, inputs) in linears {
            add(&format!("{part}.weight"), &[outputs, inputs]);
            if config.has_bias(part) {
                add(&format!("{part}.bias"), &[outputs]);
            }
        }
    }
    tensors.push(("model.norm.weight".to_owned(), vec![hidden]));
    if !config.tie_embeddings {
        tensors.push(("lm_head.weight".to_owned(), vec![config.vocab_size, hidden]));
    }
    tensors
}
