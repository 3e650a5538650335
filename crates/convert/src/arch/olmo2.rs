//! OLMo 2: norms behind attention and feed-forward part, none before them; queries and keys are normed over all heads.

use super::llama::LLAMA;
use crate::source::family::{Activation, Defaults, Family, LayerShape, QkNorm};

/// OLMo 2.
pub(super) static OLMO2: Family = Family {
    name: "olmo2",
    models: "OLMo 2",
    gguf: &["olmo2"],
    classes: &["Olmo2ForCausalLM"],
    model_types: &["olmo2"],
    interleaved_in_gguf: false,
    layer: LayerShape {
        before_attention: None,
        after_attention: Some("post_attention_layernorm"),
        before_mlp: None,
        after_mlp: Some("post_feedforward_layernorm"),
        qk_norm: QkNorm::Whole,
        activation: Activation::Silu,
    },
    defaults: Defaults { norm_eps: 1e-5, ..LLAMA.defaults },
    read_gguf: |config, keys| match config.sliding_window {
        // Such files are of OLMo 3, which llama.cpp gives the same name.
        Some(_) => Err(keys.unsupported("a sliding window".to_owned(), "OLMo 2 has none, and OLMo 3 is not converted")),
        None => Ok(()),
    },
    ..LLAMA
};
