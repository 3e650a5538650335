//! Mistral as Hugging Face has it: a Llama, whose layers may look back no further than a window.

use super::llama::LLAMA;
use super::tensors::{PRE_NORM, tensors};
use crate::source::family::{Defaults, Family};

/// Mistral. In GGUF files these models are called `llama`.
pub(super) static MISTRAL: Family = Family {
    name: "mistral",
    models: "Mistral 7B, Mistral Nemo",
    gguf: &[],
    classes: &["MistralForCausalLM"],
    model_types: &["mistral"],
    layer: PRE_NORM,
    fused: &[],
    defaults: Defaults { kv_heads: Some(8), context_length: 131072, sliding_window: Some(4096), ..LLAMA.defaults },
    tensors,
    read_folder: |_, _| Ok(()),
    ..LLAMA
};
