//! Qwen 2 and 2.5: a Llama with biases on queries, keys and values.

use super::llama::LLAMA;
use crate::error::Result;
use crate::source::config::{Config, Layers};
use crate::source::family::{Defaults, Family};
use crate::source::hf_config::layer_types;
use crate::source::json::Object;

/// Qwen 2 and 2.5.
pub(super) static QWEN2: Family = Family {
    name: "qwen2",
    models: "Qwen 2 and 2.5, DeepSeek-R1 distills of Qwen 2.5",
    gguf: &["qwen2"],
    classes: &["Qwen2ForCausalLM"],
    model_types: &["qwen2"],
    interleaved_in_gguf: false,
    defaults: Defaults { kv_heads: Some(32), context_length: 32768, sliding_window: Some(4096), ..LLAMA.defaults },
    read_folder: |config, json| {
        config.qkv_bias = true;
        config.attention_output_bias = false;
        sliding_layers(config, json)
    },
    read_gguf: |config, _| {
        config.sliding_layers = Layers::None;
        Ok(())
    },
    ..LLAMA
};

/// With `use_sliding_window`, the layers from `max_window_layers` on, or those of `layer_types`.
pub(super) fn sliding_layers(config: &mut Config, json: &Object) -> Result<()> {
    config.sliding_layers = match (json.bool("use_sliding_window")?, layer_types(json)?) {
        (Some(true), Some(listed)) => listed,
        (Some(true), None) => Layers::From(json.usize("max_window_layers")?.unwrap_or(28)),
        _ => Layers::None,
    };
    Ok(())
}
