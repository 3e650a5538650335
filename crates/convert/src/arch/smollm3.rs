//! SmolLM3: a Llama in which every fourth layer has no rotary positions.

use super::llama::LLAMA;
use crate::error::Result;
use crate::source::config::{Config, Layers};
use crate::source::family::{Defaults, Family};
use crate::source::hf_config::layer_types;
use crate::source::json::Object;

/// Where nothing else is said, the last layer of each group of this many has no rotary positions.
const INTERVAL: usize = 4;

/// SmolLM3.
pub(super) static SMOLLM3: Family = Family {
    name: "smollm3",
    models: "SmolLM3",
    gguf: &["smollm3"],
    classes: &["SmolLM3ForCausalLM"],
    model_types: &["smollm3"],
    defaults: Defaults {
        kv_heads: Some(4),
        rope_theta: 2e6,
        context_length: 32768,
        tie_embeddings: true,
        ..LLAMA.defaults
    },
    read_folder,
    read_gguf: |config, _| {
        config.rotary_layers = Layers::AllButEvery(INTERVAL);
        config.sliding_layers = Layers::None;
        Ok(())
    },
    ..LLAMA
};

fn read_folder(config: &mut Config, json: &Object) -> Result<()> {
    config.rotary_layers = match json.usize_list("no_rope_layers")? {
        // 1 is for a layer that has them, whatever the name says.
        Some(rotary) => Layers::Listed(rotary.iter().map(|&rotary| rotary != 0).collect()),
        None => Layers::AllButEvery(json.usize("no_rope_layer_interval")?.unwrap_or(INTERVAL)),
    };
    config.sliding_layers = match (json.bool("use_sliding_window")?, layer_types(json)?) {
        (Some(true), Some(listed)) => listed,
        (Some(true), None) if config.sliding_window.is_some() => {
            let without: Vec<bool> =
                (0..config.layers.min(1 << 12)).map(|i| !config.rotary_layers.contains(i)).collect();
            Layers::Listed(without)
        }
        _ => Layers::None,
    };
    Ok(())
}
