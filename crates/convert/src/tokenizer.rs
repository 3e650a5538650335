//! The tokenizer of a checkpoint as a Hugging Face `tokenizer.json`, its chat template, and generation settings.

mod byte_level;
mod character_map;
mod finish;
mod folder;
mod generation;
mod gguf;
mod growth;
mod limits;
mod longest;
mod model;
mod pairs;
mod pre_tokenizer;
mod quick;
pub(crate) mod reach;
mod sentencepiece;
mod unigram;
mod vocabulary;

use std::collections::BTreeMap;
use std::path::Path;

pub use self::generation::GenerationSettings;
pub use self::growth::longest_text;
use self::limits::MAX_PIECE_BYTES;
pub use self::model::{Model, Tokenizer};
use crate::error::{ConvertError, Result};
use crate::source::gguf::Gguf;

/// What a program needs to turn chats into tokens and back.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TokenizerFiles {
    /// The contents of `tokenizer.json`; the `tokenizers` crate loads it.
    pub json: String,
    /// The Jinja template that renders a chat.
    pub chat_template: Option<String>,
    /// All templates, where the checkpoint has several, by name.
    pub named_templates: BTreeMap<String, String>,
    /// Texts of special tokens by role (`bos_token`, `eos_token`, …), as templates use them.
    pub special_tokens: BTreeMap<String, String>,
}

impl TokenizerFiles {
    /// Those of a Hugging Face folder, as they are: `tokenizer.json`, with the templates and special tokens of
    /// `tokenizer_config.json`, `special_tokens_map.json` and `chat_template.jinja`.
    ///
    /// # Errors
    /// [`ConvertError::Tokenizer`] if there is no `tokenizer.json` or it cannot be loaded; files that are malformed or
    /// too large.
    pub fn from_folder(folder: &Path) -> Result<Self> {
        folder::read(folder)
    }

    /// Rebuilt from the metadata of a GGUF file.
    ///
    /// # Errors
    /// [`ConvertError::Tokenizer`] or [`ConvertError::Setting`] if the vocabulary is absent, of an unknown kind,
    /// contradicts itself or exceeds a bound.
    pub fn from_gguf(file: &Gguf) -> Result<Self> {
        gguf::read(file)
    }
}

/// Loads a `tokenizer.json`. `path` is for errors.
///
/// Files from outside are best loaded with this and not by the `tokenizers` crate alone, which trusts some parts of them
/// and panics where they are wrong.
///
/// # Errors
/// [`ConvertError::Tokenizer`] if the text is not JSON, or not a tokenizer that the `tokenizers` crate can load and use.
pub fn load(path: &Path, json: &str) -> Result<Tokenizer> {
    /// The part that is checked before the crate sees it.
    #[derive(serde::Deserialize)]
    struct Part {
        normalizer: Option<serde_json::Value>,
        decoder: Option<serde_json::Value>,
        model: Option<Model>,
    }
    #[derive(serde::Deserialize)]
    struct Model {
        vocab: Option<longest::Longest>,
    }
    let wrong = |problem: &dyn std::fmt::Display| {
        ConvertError::tokenizer(path, format!("not a tokenizer.json that can be loaded: {problem}"))
    };
    if let Some(document) = quick::Document::parse(json) {
        check(document.part("normalizer"), document.part("decoder")).map_err(|problem| wrong(&problem))?;
        if let Ok(Ok(tokenizer)) = std::panic::catch_unwind(|| document.load()) {
            return Ok(tokenizer);
        }
    }
    let part: Part = serde_json::from_str(json).map_err(|e| wrong(&format!("{e}; copy or download it again")))?;
    check(part.normalizer.as_ref(), part.decoder.as_ref()).map_err(|problem| wrong(&problem))?;
    // Only a unigram vocabulary is a list. Each byte of its longest piece is a level of recursion for the crate.
    if let Some(vocab) = part.model.and_then(|model| model.vocab)
        && vocab.is_list
        && vocab.text > MAX_PIECE_BYTES
    {
        return Err(wrong(&format!("a piece of {} bytes; at most {MAX_PIECE_BYTES} are read", vocab.text)));
    }
    // Version 0.23 of the crate panics on some objects that are JSON and not a tokenizer's.
    match std::panic::catch_unwind(|| json.parse::<Tokenizer>()) {
        Ok(Ok(tokenizer)) => Ok(tokenizer),
        Ok(Err(e)) => Err(wrong(&e)),
        Err(_) => Err(wrong(&"a part of it is not what the tokenizers crate expects")),
    }
}

/// Checks the parts that the `tokenizers` crate trusts.
fn check(
    normalizer: Option<&serde_json::Value>,
    decoder: Option<&serde_json::Value>,
) -> std::result::Result<(), String> {
    normalizer.map_or(Ok(()), character_map::check_all)?;
    growth::check(normalizer, decoder)
}
