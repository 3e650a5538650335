//! Gemma 2 and 3: norms on both sides of attention and feed-forward part, whose weights are stored as their distance from
//! one; scaled embeddings; layers with a window between those that see everything.

use super::llama::LLAMA;
use crate::error::Result;
use crate::source::config::{Config, FACTORS, Layers, Rope, RopeScaling, within};
use crate::source::family::{Activation, Defaults, Family, LayerShape, QkNorm};
use crate::source::gguf_config::Keys;
use crate::source::hf_config::layer_types;
use crate::source::json::Object;

const LAYER: LayerShape = LayerShape {
    before_attention: Some("input_layernorm"),
    after_attention: Some("post_attention_layernorm"),
    before_mlp: Some("pre_feedforward_layernorm"),
    after_mlp: Some("post_feedforward_layernorm"),
    qk_norm: QkNorm::None,
    activation: Activation::GeluTanh,
};

/// Gemma 2: soft caps, and every second layer sees everything.
pub(super) static GEMMA2: Family = Family {
    name: "gemma2",
    models: "Gemma 2",
    gguf: &["gemma2"],
    classes: &["Gemma2ForCausalLM"],
    model_types: &["gemma2"],
    interleaved_in_gguf: false,
    norms_from_one: true,
    layer: LAYER,
    defaults: Defaults {
        vocab_size: Some(256_000),
        heads: Some(8),
        kv_heads: Some(4),
        head_dim: Some(256),
        context_length: 8192,
        sliding_window: Some(4096),
        tie_embeddings: true,
        ..LLAMA.defaults
    },
    read_folder: |config, json| {
        config.sliding_layers = Layers::AllButEvery(2);
        config.attention_softcap = cap(json, "attn_logit_softcapping", Some(50.0))?;
        config.logit_softcap = cap(json, "final_logit_softcapping", Some(30.0))?;
        read_folder(config, json)
    },
    read_gguf: |config, keys| {
        config.sliding_layers = Layers::AllButEvery(2);
        config.attention_softcap = keys.number("attn_logit_softcapping")?.or(Some(50.0));
        config.logit_softcap = keys.number("final_logit_softcapping")?.or(Some(30.0));
        config.sliding_window = config.sliding_window.or(Some(4096));
        // The one of 27B has 46 layers.
        read_gguf(config, keys, 46)
    },
    ..LLAMA
};

/// Gemma 3: normed queries and keys, every sixth layer sees everything, and the others have rotary positions of their own.
pub(super) static GEMMA3: Family = Family {
    name: "gemma3",
    models: "Gemma 3 (text)",
    gguf: &["gemma3"],
    classes: &["Gemma3ForCausalLM", "Gemma3ForConditionalGeneration"],
    model_types: &["gemma3_text", "gemma3"],
    layer: LayerShape { qk_norm: QkNorm::Heads, ..LAYER },
    defaults: Defaults { vocab_size: Some(262_208), rope_theta: 1e6, context_length: 131_072, ..GEMMA2.defaults },
    read_folder: |config, json| {
        let pattern = json.usize("sliding_window_pattern")?.or(json.usize("_sliding_window_pattern")?);
        config.sliding_layers = Layers::AllButEvery(pattern.unwrap_or(6));
        config.attention_softcap = cap(json, "attn_logit_softcapping", None)?;
        config.logit_softcap = cap(json, "final_logit_softcapping", None)?;
        config.local_rope.get_or_insert(local_rope(config.head_dim, 10_000.0));
        read_folder(config, json)
    },
    read_gguf: |config, keys| {
        config.sliding_layers = keys.sliding_layers()?.unwrap_or(Layers::AllButEvery(6));
        config.logit_softcap = keys.number("final_logit_softcapping")?;
        let theta = keys.number("rope.freq_base_swa")?.unwrap_or(10_000.0);
        config.local_rope = Some(local_rope(config.head_dim, theta));
        // The one of 27B has 62 layers.
        read_gguf(config, keys, 62)
    },
    ..GEMMA2
};

fn local_rope(head_dim: usize, theta: f64) -> Rope {
    Rope { theta, dimensions: head_dim, scaling: RopeScaling::None }
}

/// The sums of Gemma's layers leave the range of half floats (65 504) by far, which other programs answer by clipping them.
/// Here they are kept at 1/64.
const RESIDUAL_SCALE: f64 = 1.0 / 64.0;

fn scales(config: &mut Config) {
    config.embedding_scale = (config.hidden_size as f64).sqrt();
    config.residual_scale = RESIDUAL_SCALE;
}

fn read_folder(config: &mut Config, json: &Object) -> Result<()> {
    if let Some(listed) = layer_types(json)? {
        config.sliding_layers = listed;
    }
    let scalar = json.f64("query_pre_attn_scalar")?.unwrap_or(256.0);
    within(json.path(), "query_pre_attn_scalar", scalar, FACTORS)?;
    config.attention_scale = scalar.sqrt().recip();
    scales(config);
    if json.bool("use_bidirectional_attention")? == Some(true) {
        let problem = "true, for embeddings of text; only models that generate text are converted";
        return Err(crate::ConvertError::setting(json.path(), "use_bidirectional_attention", problem));
    }
    Ok(())
}

/// GGUF files do not say what scores are scaled by. As in llama.cpp's `llama-model.cpp`, it is the head size, except in
/// the largest models, where it is the hidden size divided among the heads.
fn read_gguf(config: &mut Config, _: &Keys<'_>, layers_of_27b: usize) -> Result<()> {
    if config.layers == layers_of_27b && config.heads > 0 {
        config.attention_scale = (config.hidden_size as f64 / config.heads as f64).sqrt().recip();
    }
    scales(config);
    Ok(())
}

/// A soft cap; `null` is none.
fn cap(json: &Object, key: &str, default: Option<f64>) -> Result<Option<f64>> {
    if json.has(key) { json.f64(key) } else { Ok(default) }
}
