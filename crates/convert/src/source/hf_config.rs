//! Settings from a Hugging Face `config.json`.

use super::config::{Config, Rope, RopeScaling};
use super::family::{self, FAMILIES, Family};
use super::json::Object;
use crate::error::{ConvertError, Result};
use crate::tokenizer::GenerationSettings;

/// Reads the settings of any supported family.
pub(super) fn read(config: &Object, generation: &GenerationSettings) -> Result<Config> {
    let family = family(config)?;
    let unsupported = |feature: String, remedy: &str| ConvertError::UnsupportedFeature {
        path: config.path().to_owned(),
        feature,
        remedy: remedy.to_owned(),
    };
    if let Some(quantization) = config.object("quantization_config")? {
        let method = quantization.str("quant_method")?.unwrap_or("unnamed").to_owned();
        return Err(unsupported(
            format!("quantization {method:?} of the checkpoint"),
            "give the F16, BF16 or F32 checkpoint",
        ));
    }
    let activation = config.str("hidden_act")?.unwrap_or("silu");
    if !matches!(activation, "silu" | "swish") {
        return Err(unsupported(format!("activation {activation:?}"), "this family has \"silu\""));
    }
    let defaults = &family.defaults;
    let required = |key: &str| config.required(key, config.usize(key)?);
    let hidden_size = required("hidden_size")?;
    let heads = required("num_attention_heads")?;
    let head_dim = match config.usize("head_dim")? {
        Some(head_dim) => head_dim,
        None => super::even_split(config.path(), "hidden_size", hidden_size, heads)?,
    };
    let kv_heads = config.usize("num_key_value_heads")?.unwrap_or(match config.has("num_key_value_heads") {
        false => defaults.kv_heads.unwrap_or(heads),
        true => heads,
    });
    let sliding_window = match config.has("sliding_window") {
        true => config.usize("sliding_window")?,
        false => defaults.sliding_window,
    };
    let qkv_bias = config.bool("attention_bias")?.unwrap_or(false);
    Ok(Config {
        family,
        vocab_size: required("vocab_size")?,
        hidden_size,
        layers: required("num_hidden_layers")?,
        heads,
        kv_heads,
        head_dim,
        ffn_size: required("intermediate_size")?,
        norm_eps: config.f64("rms_norm_eps")?.unwrap_or(defaults.norm_eps),
        rope: rope(config, head_dim, defaults.rope_theta)?,
        context_length: config.usize("max_position_embeddings")?.unwrap_or(defaults.context_length),
        tie_embeddings: config.bool("tie_word_embeddings")?.unwrap_or(false),
        qkv_bias,
        attention_output_bias: qkv_bias,
        mlp_bias: config.bool("mlp_bias")?.unwrap_or(false),
        sliding_window,
        bos: generation.bos,
        eos: generation.eos.clone(),
    })
}

fn family(config: &Object) -> Result<&'static Family> {
    let class = config.get("architectures").and_then(|list| list.get(0)).and_then(|class| class.as_str());
    let model_type = config.str("model_type")?;
    let found = FAMILIES.iter().copied().find(|family| match (class, model_type) {
        (Some(class), _) => family.classes.contains(&class),
        (None, Some(model_type)) => family.model_types.contains(&model_type),
        (None, None) => false,
    });
    found.ok_or_else(|| ConvertError::UnsupportedArchitecture {
        path: config.path().to_owned(),
        found: class.or(model_type).unwrap_or("(none named)").to_owned(),
        supported: family::supported(),
    })
}

/// Both spellings: `rope_theta` beside `rope_scaling`, and `rope_parameters` (transformers 5).
fn rope(config: &Object, head_dim: usize, default_theta: f64) -> Result<Rope> {
    let parameters = match config.object("rope_parameters")? {
        Some(parameters) => Some(parameters),
        None => config.object("rope_scaling")?,
    };
    let mut theta = config.f64("rope_theta")?;
    let mut scaling = RopeScaling::None;
    if let Some(parameters) = &parameters {
        theta = parameters.f64("rope_theta")?.or(theta);
        scaling = self::scaling(parameters, config)?;
    }
    let partial = match &parameters {
        Some(parameters) => parameters.f64("partial_rotary_factor")?,
        None => None,
    };
    if config.f64("partial_rotary_factor")?.or(partial).is_some_and(|factor| factor != 1.0) {
        return Err(ConvertError::UnsupportedFeature {
            path: config.path().to_owned(),
            feature: "a partial rotary embedding".to_owned(),
            remedy: "this family rotates whole heads".to_owned(),
        });
    }
    Ok(Rope { theta: theta.unwrap_or(default_theta), dimensions: head_dim, scaling })
}

fn scaling(parameters: &Object, config: &Object) -> Result<RopeScaling> {
    let kind = match parameters.str("rope_type")? {
        Some(kind) => Some(kind),
        None => parameters.str("type")?,
    };
    let number = |key: &str| parameters.required(key, parameters.f64(key)?);
    match kind.unwrap_or("default") {
        "default" => Ok(RopeScaling::None),
        "linear" => Ok(RopeScaling::Linear { factor: number("factor")? }),
        "llama3" => {
            let original = match parameters.f64("original_max_position_embeddings")? {
                Some(original) => original,
                None => config.required("max_position_embeddings", config.f64("max_position_embeddings")?)?,
            };
            Ok(RopeScaling::Llama3 {
                factor: number("factor")?,
                low_freq_factor: number("low_freq_factor")?,
                high_freq_factor: number("high_freq_factor")?,
                original_context: original,
            })
        }
        other => Err(super::unsupported_scaling(config.path(), other)),
    }
}
