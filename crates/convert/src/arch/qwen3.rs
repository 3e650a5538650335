//! Qwen 3 (the dense ones): a Llama whose queries and keys are normed, head by head.

use super::llama::LLAMA;
use super::qwen2::{QWEN2, sliding_layers};
use super::tensors::PRE_NORM;
use crate::source::family::{Defaults, Family, LayerShape, QkNorm};

/// Qwen 3.
pub(super) static QWEN3: Family = Family {
    name: "qwen3",
    models: "Qwen 3 (dense)",
    gguf: &["qwen3"],
    classes: &["Qwen3ForCausalLM"],
    model_types: &["qwen3"],
    interleaved_in_gguf: false,
    layer: LayerShape { qk_norm: QkNorm::Heads, ..PRE_NORM },
    defaults: Defaults { head_dim: Some(128), ..QWEN2.defaults },
    read_folder: sliding_layers,
    read_gguf: QWEN2.read_gguf,
    ..LLAMA
};
