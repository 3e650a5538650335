//! The tokenizer of a GGUF file, rebuilt from its metadata.

use std::collections::BTreeMap;

use super::vocabulary::{self, Token};
use super::{TokenizerFiles, byte_level, sentencepiece, unigram};
use crate::error::{ConvertError, Result};
use crate::source::gguf::{Gguf, ValueKind};

const MODEL: &str = "tokenizer.ggml.model";

/// Kinds of vocabulary: the value of `tokenizer.ggml.model`, and what builds the tokenizer.
type Build = fn(&Gguf, &[Token]) -> Result<String>;
const KINDS: &[(&str, Build)] = &[("gpt2", byte_level::build), ("llama", sentencepiece::build), ("t5", unigram::build)];

/// Rebuilds the tokenizer and takes the chat templates.
pub(super) fn read(file: &Gguf) -> Result<TokenizerFiles> {
    let metadata = file.metadata();
    let tokens = vocabulary::read(file)?;
    let json = match metadata.str("tokenizer.huggingface.json")? {
        Some(json) => {
            super::load(file.path(), json)?;
            json.to_owned()
        }
        None => {
            let model = metadata.str(MODEL)?.unwrap_or("(none named)");
            let (_, build) = KINDS.iter().find(|(name, _)| *name == model).ok_or_else(|| {
                let known: Vec<_> = KINDS.iter().map(|(name, _)| *name).collect();
                let problem = format!("{model:?} is not a kind of vocabulary that is known: {}", known.join(", "));
                ConvertError::setting(file.path(), MODEL, problem)
            })?;
            build(file, &tokens)?
        }
    };
    Ok(TokenizerFiles {
        json,
        chat_template: metadata.str("tokenizer.chat_template")?.map(str::to_owned),
        named_templates: named_templates(file)?,
        special_tokens: special_tokens(file, &tokens)?,
    })
}

fn named_templates(file: &Gguf) -> Result<BTreeMap<String, String>> {
    let mut templates = BTreeMap::new();
    if let Some(names) = file.metadata().array("tokenizer.chat_templates", &[ValueKind::String])? {
        for name in names.texts() {
            let Ok(name) = std::str::from_utf8(&name) else { continue };
            if let Some(template) = file.metadata().str(&format!("tokenizer.chat_template.{name}"))? {
                templates.insert(name.to_owned(), template.to_owned());
            }
        }
    }
    Ok(templates)
}

/// The texts of special tokens by Hugging Face's role.
fn special_tokens(file: &Gguf, tokens: &[Token]) -> Result<BTreeMap<String, String>> {
    let mut special = BTreeMap::new();
    // "seperator" is the format's own spelling.
    for (role, name) in [
        ("bos_token", "bos"),
        ("eos_token", "eos"),
        ("unk_token", "unknown"),
        ("sep_token", "seperator"),
        ("pad_token", "padding"),
        ("mask_token", "mask"),
    ] {
        let id = file.metadata().u32(&format!("tokenizer.ggml.{name}_token_id"))?;
        if let Some(token) = id.and_then(|id| tokens.get(id as usize)) {
            special.insert(role.to_owned(), token.text.clone());
        }
    }
    Ok(special)
}
