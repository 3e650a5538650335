//! Settings from a Hugging Face `config.json`.

use super::config::{Config, Layers};
use super::family::{self, FAMILIES, Family};
use super::hf_rope::ropes;
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
    // Of a model that also sees, the part that speaks.
    let text = config.object("text_config")?;
    let config = text.as_ref().unwrap_or(config);
    let names = family.layer.activation.names();
    let activation = config.str("hidden_activation")?.or(config.str("hidden_act")?).unwrap_or(names[0]);
    if !names.contains(&activation) {
        let remedy = format!("this family has {:?}", names[0]);
        return Err(unsupported(format!("activation {activation:?}"), &remedy));
    }
    let defaults = &family.defaults;
    let known = |key: &str, default: Option<usize>| config.required(key, config.usize(key)?.or(default));
    let required = |key: &str| known(key, None);
    let hidden_size = required("hidden_size")?;
    let heads = known("num_attention_heads", defaults.heads)?;
    let head_dim = match config.usize("head_dim")?.or(defaults.head_dim) {
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
    let context_length = config.usize("max_position_embeddings")?.unwrap_or(defaults.context_length);
    let (rope, local_rope) = ropes(config, family, head_dim, context_length)?;
    let bias = config.bool("attention_bias")?.unwrap_or(false);
    let mut settings = Config {
        family,
        vocab_size: known("vocab_size", defaults.vocab_size)?,
        hidden_size,
        layers: required("num_hidden_layers")?,
        heads,
        kv_heads,
        head_dim,
        ffn_size: required("intermediate_size")?,
        norm_eps: config.f64("rms_norm_eps")?.unwrap_or(defaults.norm_eps),
        rope,
        local_rope,
        rotary_layers: Layers::All,
        context_length,
        tie_embeddings: config.bool("tie_word_embeddings")?.unwrap_or(defaults.tie_embeddings),
        qkv_bias: bias,
        attention_output_bias: bias,
        mlp_bias: config.bool("mlp_bias")?.unwrap_or(false),
        sliding_window,
        sliding_layers: Layers::All,
        attention_scale: (head_dim as f64).sqrt().recip(),
        attention_softcap: None,
        logit_softcap: None,
        embedding_scale: 1.0,
        residual_scale: 1.0,
        bos: generation.bos,
        eos: generation.eos.clone(),
    };
    (family.read_folder)(&mut settings, config)?;
    Ok(settings)
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

/// The layers that look back no further than the window, by `layer_types`, if it is there.
pub(crate) fn layer_types(config: &Object) -> Result<Option<Layers>> {
    let key = "layer_types";
    let Some(value) = config.get(key) else { return Ok(None) };
    let wrong = |problem: String| Err(ConvertError::setting(config.path(), key, problem));
    let Some(list) = value.as_array() else { return wrong("expected a list".to_owned()) };
    let mut listed = Vec::with_capacity(list.len());
    for kind in list {
        match kind.as_str() {
            Some("sliding_attention") => listed.push(true),
            Some("full_attention") => listed.push(false),
            _ => return wrong(format!("{kind}; expected \"sliding_attention\" or \"full_attention\"")),
        }
    }
    Ok(Some(Layers::Listed(listed)))
}
