//! The vocabulary in the metadata of a GGUF file: texts, types and scores of tokens.

use std::path::Path;

use bytes::Bytes;

use super::limits::{MAX_TOKEN_BYTES, MAX_TOKENS};
use crate::error::{ConvertError, Result};
use crate::source::gguf::{Gguf, Metadata, ValueKind};

/// What a token is for (`llama_token_type` of llama.cpp).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenType {
    Normal,
    Unknown,
    Control,
    UserDefined,
    Unused,
    Byte,
}

impl TokenType {
    fn from_code(code: u64) -> Self {
        match code {
            2 => Self::Unknown,
            3 => Self::Control,
            4 => Self::UserDefined,
            5 => Self::Unused,
            6 => Self::Byte,
            _ => Self::Normal,
        }
    }
}

/// A token of the vocabulary; its id is its place in the list.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub(super) text: String,
    pub(super) kind: TokenType,
    pub(super) score: f32,
}

const TOKENS: &str = "tokenizer.ggml.tokens";
const TYPES: &str = "tokenizer.ggml.token_type";
const SCORES: &str = "tokenizer.ggml.scores";

/// Reads the vocabulary.
pub(super) fn read(file: &Gguf) -> Result<Vec<Token>> {
    let (path, metadata) = (file.path(), file.metadata());
    let texts = metadata
        .array(TOKENS, &[ValueKind::String])?
        .ok_or_else(|| ConvertError::setting(path, TOKENS, "absent; the file has no vocabulary"))?;
    if texts.is_empty() || texts.len() > MAX_TOKENS {
        let problem = format!("{} tokens; expected 1 to {MAX_TOKENS}", texts.len());
        return Err(ConvertError::setting(path, TOKENS, problem));
    }
    let types = types(metadata)?;
    let scores: Option<Vec<f32>> = metadata
        .array(SCORES, &[ValueKind::F32, ValueKind::I32])?
        .map(|scores| scores.iter().filter_map(|score| score.as_f64()).map(|score| score as f32).collect());
    for (key, length) in [(TYPES, types.as_ref().map(Vec::len)), (SCORES, scores.as_ref().map(Vec::len))] {
        if length.is_some_and(|length| length < texts.len()) {
            return Err(ConvertError::setting(path, key, format!("shorter than the {} tokens", texts.len())));
        }
    }
    let mut tokens = Vec::with_capacity(texts.len());
    for (id, text) in texts.texts().enumerate() {
        tokens.push(Token {
            text: token_text(path, id, &text)?,
            kind: types.as_ref().map_or(TokenType::Normal, |types| types[id]),
            score: scores.as_ref().map_or(0.0, |scores| scores[id]),
        });
    }
    Ok(tokens)
}

/// For each token, whether it is a control token; empty if the file does not say.
pub(super) fn control_tokens(metadata: &Metadata) -> Result<Vec<bool>> {
    Ok(types(metadata)?.unwrap_or_default().into_iter().map(|kind| kind == TokenType::Control).collect())
}

fn types(metadata: &Metadata) -> Result<Option<Vec<TokenType>>> {
    let Some(types) = metadata.array(TYPES, &[ValueKind::I32, ValueKind::U32])? else { return Ok(None) };
    Ok(Some(types.iter().map(|code| TokenType::from_code(code.as_u64().unwrap_or_default())).collect()))
}

fn token_text(path: &Path, id: usize, text: &Bytes) -> Result<String> {
    if text.len() > MAX_TOKEN_BYTES {
        let problem = format!("token {id} is {} bytes long; at most {MAX_TOKEN_BYTES} are read", text.len());
        return Err(ConvertError::setting(path, TOKENS, problem));
    }
    if text.is_empty() {
        return Ok(format!("[EMPTY_{id}]"));
    }
    // A few vocabularies hold tokens that are not UTF-8. They keep their id under a text that no input has.
    Ok(match std::str::from_utf8(text) {
        Ok(text) => text.to_owned(),
        Err(_) => format!("[INVALID_{id}]"),
    })
}
