//! SentencePiece byte-pair vocabularies (`tokenizer.ggml.model` = `llama`): Llama 2, TinyLlama, Mistral.
//!
//! SentencePiece joins the neighbours whose joined piece has the best score. As ranked merges, as `tokenizer.json` has
//! them: every way to join two pieces into a third, best score first.

use std::collections::HashMap;

use tokenizers::decoders::byte_fallback::ByteFallback;
use tokenizers::decoders::fuse::Fuse;
use tokenizers::decoders::sequence::Sequence as Decoders;
use tokenizers::decoders::strip::Strip;
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::normalizers::{Prepend, Replace, Sequence as Normalizers};
use tokenizers::{DecoderWrapper, NormalizerWrapper};

use super::finish::{Parts, finish, ids};
use super::limits::{MAX_MERGE_TEXT, MAX_MERGES, MAX_PIECE_BYTES};
use super::vocabulary::{Token, TokenType};
use crate::error::{ConvertError, Result};
use crate::source::gguf::Gguf;

/// How SentencePiece writes a space.
pub(super) const SPACE: &str = "▁";

/// Builds the `tokenizer.json`.
pub(super) fn build(file: &Gguf, tokens: &[Token]) -> Result<String> {
    let path = file.path();
    let ids = ids(path, tokens)?;
    let prefix_space = file.metadata().bool("tokenizer.ggml.add_space_prefix")?.unwrap_or(true);
    let wrong = |e: tokenizers::Error| ConvertError::tokenizer(path, e);
    let merges = merges(tokens, &ids).map_err(|problem| ConvertError::tokenizer(path, problem))?;
    let vocab: Vocab = ids.iter().map(|(text, id)| ((*text).to_owned(), *id)).collect();
    let mut builder = BPE::builder()
        .vocab_and_merges(vocab, merges)
        .fuse_unk(true)
        .byte_fallback(tokens.iter().any(|token| token.kind == TokenType::Byte));
    if let Some(unknown) = unknown(file, tokens)? {
        builder = builder.unk_token(tokens[unknown].text.clone());
    }

    let mut normalizers: Vec<NormalizerWrapper> = Vec::new();
    let mut decoders: Vec<DecoderWrapper> =
        vec![Replace::new(SPACE, " ").map_err(wrong)?.into(), ByteFallback::new().into(), Fuse::new().into()];
    if prefix_space {
        normalizers.push(Prepend::new(SPACE.to_owned()).into());
        decoders.push(Strip::new(' ', 1, 0).into());
    }
    normalizers.push(Replace::new(" ", SPACE).map_err(wrong)?.into());
    let parts = Parts {
        model: builder.build().map_err(wrong)?.into(),
        normalizer: Some(Normalizers::new(normalizers).into()),
        pre_tokenizer: None,
        decoder: Decoders::new(decoders).into(),
    };
    finish(file, tokens, parts)
}

/// The place of the token for what the vocabulary does not have.
pub(super) fn unknown(file: &Gguf, tokens: &[Token]) -> Result<Option<usize>> {
    let named = file.metadata().u32("tokenizer.ggml.unknown_token_id")?.map(|id| id as usize);
    let typed = || tokens.iter().position(|token| token.kind == TokenType::Unknown);
    Ok(named.filter(|id| *id < tokens.len()).or_else(typed))
}

/// Every way to join two pieces into a third, in order of rank.
fn merges(tokens: &[Token], ids: &HashMap<&str, u32>) -> std::result::Result<Vec<(String, String)>, String> {
    struct Merge<'a> {
        left: &'a str,
        right: &'a str,
        score: f32,
    }
    let mut merges: Vec<Merge<'_>> = Vec::new();
    let mut text_bytes = 0usize;
    for token in tokens {
        if !matches!(token.kind, TokenType::Normal | TokenType::UserDefined | TokenType::Unused) {
            continue;
        }
        if !token.score.is_finite() {
            return Err(format!("token {:?} has the score {}", token.text, token.score));
        }
        let text = token.text.as_str();
        let one_character = text.chars().nth(1).is_none();
        if one_character {
            continue;
        }
        if text.len() > MAX_PIECE_BYTES {
            return Err(format!("a piece of {} bytes; at most {MAX_PIECE_BYTES} are read", text.len()));
        }
        let first = merges.len();
        for (at, _) in text.char_indices().skip(1) {
            let (left, right) = text.split_at(at);
            if ids.contains_key(left) && ids.contains_key(right) {
                merges.push(Merge { left, right, score: token.score });
                text_bytes += text.len();
            }
        }
        merges[first..].sort_by_key(|merge| (ids[merge.left], ids[merge.right]));
        if merges.len() > MAX_MERGES || text_bytes > MAX_MERGE_TEXT {
            return Err(format!(
                "more ways to join pieces than {MAX_MERGES}, or {MAX_MERGE_TEXT} bytes of them, the most that are kept"
            ));
        }
    }
    // The order of ties is that of transformers' `SentencePieceExtractor`; the sort is stable.
    let length = |text: &str| text.chars().count();
    merges.sort_by(|a, b| {
        let lengths = |merge: &Merge<'_>| (length(merge.left), length(merge.right));
        b.score.total_cmp(&a.score).then_with(|| lengths(b).cmp(&lengths(a)))
    });
    Ok(merges.into_iter().map(|merge| (merge.left.to_owned(), merge.right.to_owned())).collect())
}
