//! The tokenizer of a checkpoint as a Hugging Face `tokenizer.json`, its chat template, and generation settings.

mod byte_level;
mod character_map;
mod finish;
mod folder;
mod generation;
mod gguf;
mod limits;
mod pre_tokenizer;
mod sentencepiece;
mod unigram;
mod vocabulary;

use std::collections::BTreeMap;
use std::path::Path;

use tokenizers::Tokenizer;

pub use self::generation::GenerationSettings;
pub(crate) use self::generation::{of_folder as generation_of_folder, of_gguf as generation_of_gguf};
use crate::error::{ConvertError, Result};
use crate::source::gguf::Gguf;
use crate::source::safetensors::Folder;

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

/// From a Hugging Face folder: its files as they are.
pub(crate) fn of_folder(folder: &Folder) -> Result<TokenizerFiles> {
    folder::read(folder.path())
}

/// From GGUF metadata: rebuilt.
pub(crate) fn of_gguf(file: &Gguf) -> Result<TokenizerFiles> {
    gguf::read(file)
}

/// Refuses a `tokenizer.json` that the `tokenizers` crate does not load.
fn check(path: &Path, json: &str) -> Result<()> {
    match json.parse::<Tokenizer>() {
        Ok(_) => Ok(()),
        Err(e) => Err(ConvertError::tokenizer(path, format!("not a tokenizer.json that can be loaded: {e}"))),
    }
}
