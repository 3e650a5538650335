//! Which tokens begin and end a text, and the sampling that the model's makers recommend.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::limits::{MAX_TOKENIZER_CONFIG, MAX_TOKENIZER_JSON};
use crate::error::{ConvertError, Result};
use crate::source::gguf::{Gguf, Metadata, ValueKind};
use crate::source::json::{Object, read_bounded};
use crate::source::safetensors::Folder;

/// How text is generated with the model. What is `None` was not given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GenerationSettings {
    /// The token that begins a text.
    pub bos: Option<u32>,
    /// The tokens that end generation.
    pub eos: Vec<u32>,
    /// The token for padding.
    pub pad: Option<u32>,
    /// Whether a prompt begins with `bos` (a chat template may write it itself).
    pub add_bos: bool,
    /// Whether a prompt ends with the first of `eos`.
    pub add_eos: bool,
    /// Whether to sample; if not, the likeliest token is taken.
    pub do_sample: Option<bool>,
    /// The temperature.
    pub temperature: Option<f32>,
    /// How many of the likeliest tokens are drawn from.
    pub top_k: Option<u32>,
    /// The probability mass that is drawn from.
    pub top_p: Option<f32>,
    /// The least probability that is drawn, relative to the likeliest token's.
    pub min_p: Option<f32>,
    /// By how much a token that has occurred is made less likely; 1 is not at all.
    pub repetition_penalty: Option<f32>,
}

/// Texts of control tokens that end a turn in the chat formats of today. GGUF files name one end-of-sequence token;
/// chat models have more, and llama.cpp finds them by their text too (`llama_vocab::impl::load`).
const END_OF_TURN: &[&str] = &[
    "<|eot_id|>",
    "<|eom_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<end_of_turn>",
    "<end_of_utterance>",
    "<EOT>",
    "[EOT]",
];

impl GenerationSettings {
    /// From the metadata of a GGUF file.
    ///
    /// # Errors
    /// [`ConvertError::Setting`] for keys of the wrong type.
    pub fn from_gguf(file: &Gguf) -> Result<Self> {
        of_gguf(file)
    }

    /// From `generation_config.json`, `config.json` and `tokenizer_config.json`.
    ///
    /// # Errors
    /// Files that are malformed, and keys of the wrong type.
    pub fn from_folder(folder: &Folder) -> Result<Self> {
        of_folder(folder)
    }
}

fn of_gguf(file: &Gguf) -> Result<GenerationSettings> {
    let metadata = file.metadata();
    let tokens = metadata.array("tokenizer.ggml.tokens", &[ValueKind::String])?;
    let count = tokens.map_or(0, |tokens| tokens.len());
    let id = |name: &str| -> Result<Option<u32>> {
        let key = format!("tokenizer.ggml.{name}_token_id");
        let id = metadata.u32(&key)?;
        if let Some(id) = id
            && id as usize >= count
        {
            tracing::warn!(key, id, count, "a special token is not in the vocabulary; ignored");
            return Ok(None);
        }
        Ok(id)
    };
    let mut eos = Vec::new();
    for name in ["eos", "eot", "eom"] {
        eos.extend(id(name)?.filter(|id| !eos.contains(id)));
    }
    if let Some(tokens) = tokens {
        let control = super::vocabulary::control_tokens(metadata)?;
        for (id, text) in (0u32..).zip(tokens.texts()) {
            let ends = END_OF_TURN.iter().any(|end| end.as_bytes() == &text[..]);
            if ends && control.get(id as usize) == Some(&true) && !eos.contains(&id) {
                eos.push(id);
            }
        }
    }
    let sentencepiece = metadata.str("tokenizer.ggml.model")? == Some("llama");
    let pre = metadata.str("tokenizer.ggml.pre")?.unwrap_or_default();
    let bos = id("bos")?;
    let add_bos = metadata.bool("tokenizer.ggml.add_bos_token")?;
    let add_eos = metadata.bool("tokenizer.ggml.add_eos_token")?;
    let settings = GenerationSettings {
        bos,
        pad: id("padding")?,
        add_bos: bos.is_some() && add_bos.unwrap_or(sentencepiece || super::pre_tokenizer::adds_bos(pre)),
        add_eos: !eos.is_empty() && add_eos.unwrap_or(false),
        eos,
        do_sample: None,
        temperature: sampling(metadata, "temp")?,
        top_k: metadata.u32("general.sampling.top_k")?,
        top_p: sampling(metadata, "top_p")?,
        min_p: sampling(metadata, "min_p")?,
        repetition_penalty: sampling(metadata, "penalty_repeat")?,
    };
    check(file.path(), &settings, |name| {
        let name = match name {
            "temperature" => "temp",
            "repetition_penalty" => "penalty_repeat",
            other => other,
        };
        format!("general.sampling.{name}")
    })?;
    Ok(settings)
}

/// Refuses settings that no sampler can follow; `key` gives the name of one in the file.
fn check(path: &Path, settings: &GenerationSettings, key: impl Fn(&str) -> String) -> Result<()> {
    type Fits = fn(f32) -> bool;
    let GenerationSettings { temperature, top_p, min_p, repetition_penalty, .. } = settings;
    let bounds: [(_, _, Fits, _); 4] = [
        ("temperature", temperature, |v| v.is_finite() && v >= 0.0, "a finite number from 0 on"),
        ("top_p", top_p, |v| v > 0.0 && v <= 1.0, "a number over 0 and up to 1"),
        ("min_p", min_p, |v| (0.0..=1.0).contains(&v), "a number from 0 to 1"),
        ("repetition_penalty", repetition_penalty, |v| v.is_finite() && v > 0.0, "a finite number over 0"),
    ];
    for (name, found, fits, expected) in bounds {
        if let Some(found) = found.filter(|&v| !fits(v)) {
            let problem = format!("{found}; expected {expected}; correct it, or leave it out");
            return Err(ConvertError::setting(path, &key(name), problem));
        }
    }
    Ok(())
}

fn sampling(metadata: &Metadata, name: &str) -> Result<Option<f32>> {
    Ok(metadata.f64(&format!("general.sampling.{name}"))?.map(|v| v as f32))
}

fn of_folder(folder: &Folder) -> Result<GenerationSettings> {
    let config = folder.config();
    let generation = folder.generation_config()?;
    let tokenizer_config = folder.path().join("tokenizer_config.json");
    let tokenizer_config = match tokenizer_config.is_file() {
        true => Some(Object::read(&tokenizer_config, MAX_TOKENIZER_CONFIG)?),
        false => None,
    };
    let id = |key: &str| -> Result<Option<u32>> {
        match &generation {
            Some(generation) if generation.get(key).is_some() => generation.u32(key),
            _ => config.u32(key),
        }
    };
    let number = |key: &str| -> Result<Option<f32>> {
        let Some(generation) = &generation else { return Ok(None) };
        Ok(generation.f64(key)?.map(|v| v as f32))
    };
    let vocabulary = config.usize("vocab_size")?;
    let says = generation.as_ref().filter(|generation| generation.get("eos_token_id").is_some()).unwrap_or(config);
    let mut eos = says.u32_list("eos_token_id")?.unwrap_or_default();
    if let Some((vocabulary, id)) = vocabulary.and_then(|n| Some((n, eos.iter().find(|id| **id as usize >= n)?))) {
        let problem =
            format!("the token {id}; expected one of the {vocabulary} of `vocab_size`; correct it, or leave it out");
        return Err(ConvertError::setting(says.path(), "eos_token_id", problem));
    }
    if let Some(id) = tokenizer_config.as_ref().and_then(|config| added_token_id(config, "eos_token"))
        && vocabulary.is_none_or(|n| (id as usize) < n)
        && !eos.contains(&id)
    {
        eos.push(id);
    }
    let bos = id("bos_token_id")?;
    let flag = |key: &str| tokenizer_config.as_ref().map_or(Ok(None), |config| config.bool(key));
    let add_bos = match flag("add_bos_token")? {
        Some(add) => add,
        None => post_processor_begins_with_special(&folder.path().join("tokenizer.json"))?,
    };
    let settings = GenerationSettings {
        bos,
        add_bos: add_bos && bos.is_some(),
        add_eos: flag("add_eos_token")?.unwrap_or(false) && !eos.is_empty(),
        eos,
        pad: id("pad_token_id")?,
        do_sample: generation.as_ref().map_or(Ok(None), |generation| generation.bool("do_sample"))?,
        temperature: number("temperature")?,
        top_k: generation.as_ref().map_or(Ok(None), |generation| generation.u32("top_k"))?,
        top_p: number("top_p")?,
        min_p: number("min_p")?,
        repetition_penalty: number("repetition_penalty")?,
    };
    check(generation.as_ref().unwrap_or(config).path(), &settings, str::to_owned)?;
    Ok(settings)
}

/// The id of a special token that `tokenizer_config.json` names by its text.
fn added_token_id(config: &Object, key: &str) -> Option<u32> {
    let text = super::folder::token_text(config.get(key)?)?;
    let added = config.get("added_tokens_decoder")?.as_object()?;
    let (id, _) = added.iter().find(|(_, token)| super::folder::token_text(token) == Some(text))?;
    id.parse().ok()
}

/// Whether the post-processor of a `tokenizer.json` puts a special token before a text.
fn post_processor_begins_with_special(path: &Path) -> Result<bool> {
    #[derive(Deserialize)]
    struct Part {
        post_processor: Option<serde_json::Value>,
    }
    if !path.is_file() {
        return Ok(false);
    }
    let bytes = read_bounded(path, MAX_TOKENIZER_JSON)?;
    let part: Part = serde_json::from_slice(&bytes)
        .map_err(|e| crate::ConvertError::tokenizer(path, format!("{e}; copy or download it again")))?;
    Ok(part.post_processor.as_ref().is_some_and(begins_with_special))
}

fn begins_with_special(processor: &serde_json::Value) -> bool {
    if let Some(list) = processor.get("processors").and_then(|list| list.as_array()) {
        return list.iter().any(begins_with_special);
    }
    processor.get("single").and_then(|single| single.get(0)).is_some_and(|first| first.get("SpecialToken").is_some())
}
