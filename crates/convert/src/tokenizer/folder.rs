//! The tokenizer of a Hugging Face folder: its files as they are, once they have been found sound.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::TokenizerFiles;
use super::limits::{MAX_TOKENIZER_CONFIG, MAX_TOKENIZER_JSON};
use crate::error::{ConvertError, Result};
use crate::source::json::{Object, read_bounded};

/// The roles of special tokens that chat templates may ask for.
const ROLES: &[&str] = &["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];

/// Reads `tokenizer.json`, and what `tokenizer_config.json`, `special_tokens_map.json` and `chat_template.jinja` add.
pub(super) fn read(folder: &Path) -> Result<TokenizerFiles> {
    let path = folder.join("tokenizer.json");
    if !path.is_file() {
        return Err(ConvertError::tokenizer(&path, "the file is missing; save the model with its fast tokenizer"));
    }
    let bytes = read_bounded(&path, MAX_TOKENIZER_JSON)?;
    let json = String::from_utf8(bytes).map_err(|e| ConvertError::tokenizer(&path, e))?;
    super::load(&path, &json)?;
    let mut files = TokenizerFiles { json, ..TokenizerFiles::default() };
    // The later file has the last word.
    for name in ["special_tokens_map.json", "tokenizer_config.json"] {
        let path = folder.join(name);
        if path.is_file() {
            let config = Object::read(&path, MAX_TOKENIZER_CONFIG)?;
            for &role in ROLES {
                if let Some(text) = config.get(role).and_then(token_text) {
                    files.special_tokens.insert(role.to_owned(), text.to_owned());
                }
            }
            if let Some(template) = config.get("chat_template") {
                templates(&path, template, &mut files)?;
            }
        }
    }
    let path = folder.join("chat_template.jinja");
    if path.is_file() {
        let bytes = read_bounded(&path, MAX_TOKENIZER_CONFIG)?;
        files.chat_template = Some(String::from_utf8(bytes).map_err(|e| ConvertError::malformed(&path, e))?);
    }
    Ok(files)
}

/// The text of a special token: itself, or the `content` of an added token.
pub(super) fn token_text(token: &Value) -> Option<&str> {
    token.as_str().or_else(|| token.get("content")?.as_str())
}

/// `chat_template`: a text, or a list of named ones, of which `default` is the one to use.
fn templates(path: &Path, value: &Value, files: &mut TokenizerFiles) -> Result<()> {
    if let Some(text) = value.as_str() {
        files.chat_template = Some(text.to_owned());
        return Ok(());
    }
    let named = value.as_array().and_then(|list| {
        let pair = |entry: &Value| {
            Some((entry.get("name")?.as_str()?.to_owned(), entry.get("template")?.as_str()?.to_owned()))
        };
        list.iter().map(pair).collect::<Option<BTreeMap<_, _>>>()
    });
    let Some(named) = named else {
        let problem = "neither text nor a list of objects with `name` and `template`";
        return Err(ConvertError::setting(path, "chat_template", problem));
    };
    files.chat_template = named.get("default").or_else(|| named.values().next()).cloned();
    files.named_templates = named;
    Ok(())
}
