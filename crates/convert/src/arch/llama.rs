//! Llama and its kin: pre-norm layers of rotary grouped-query attention and a gated feed-forward part.

use super::tensors::{PRE_NORM, tensors};
use crate::source::family::{Defaults, Family};

/// Llama 2 and 3, SmolLM2, TinyLlama and others of the same shape; Mistral models in GGUF files.
pub(super) static LLAMA: Family = Family {
    name: "llama",
    models: "Llama 2 and 3.x, SmolLM2, TinyLlama, DeepSeek-R1 distills of Llama",
    gguf: &["llama"],
    classes: &["LlamaForCausalLM"],
    model_types: &["llama"],
    interleaved_in_gguf: true,
    norms_from_one: false,
    partial_rotary: false,
    layer: PRE_NORM,
    fused: &[],
    defaults: Defaults {
        vocab_size: None,
        heads: None,
        kv_heads: None,
        head_dim: None,
        norm_eps: 1e-6,
        rope_theta: 10000.0,
        context_length: 2048,
        sliding_window: None,
        tie_embeddings: false,
    },
    // Some that were cut from Mistral's still name one, which Hugging Face's Llama does not look at.
    read_folder: |config, _| {
        config.sliding_window = None;
        Ok(())
    },
    read_gguf: |_, _| Ok(()),
    tensors,
};
