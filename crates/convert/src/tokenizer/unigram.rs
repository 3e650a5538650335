//! SentencePiece unigram vocabularies (`tokenizer.ggml.model` = `t5`).

use tokenizers::NormalizerWrapper;
use tokenizers::decoders::byte_fallback::ByteFallback;
use tokenizers::decoders::fuse::Fuse;
use tokenizers::decoders::sequence::Sequence as Decoders;
use tokenizers::decoders::strip::Strip;
use tokenizers::models::unigram::Unigram;
use tokenizers::normalizers::replace::ReplacePattern;
use tokenizers::normalizers::{Precompiled, Prepend, Replace, Sequence as Normalizers};

use super::finish::{Parts, finish, ids};
use super::sentencepiece::{SPACE, unknown};
use super::vocabulary::{Token, TokenType};
use super::{character_map, limits::MAX_PIECE_BYTES};
use crate::error::{ConvertError, Result};
use crate::source::gguf::{Gguf, ValueKind};

const CHARACTER_MAP: &str = "tokenizer.ggml.precompiled_charsmap";

/// Builds the `tokenizer.json`.
pub(super) fn build(file: &Gguf, tokens: &[Token]) -> Result<String> {
    let (path, metadata) = (file.path(), file.metadata());
    let wrong = |e: tokenizers::Error| ConvertError::tokenizer(path, e);
    // Also refuses double texts.
    ids(path, tokens)?;
    for token in tokens {
        if !token.score.is_finite() || token.text.len() > MAX_PIECE_BYTES {
            let problem = format!(
                "token {:?} has the score {} and {} bytes; expected a finite score and at most {MAX_PIECE_BYTES} bytes",
                token.text,
                token.score,
                token.text.len()
            );
            return Err(ConvertError::tokenizer(path, problem));
        }
    }
    let unknown = unknown(file, tokens)?;
    if unknown.is_none() {
        return Err(ConvertError::tokenizer(path, "no token for unknown text; a unigram vocabulary needs one"));
    }
    let byte_fallback = tokens.iter().any(|token| token.kind == TokenType::Byte);
    let vocab = tokens.iter().map(|token| (token.text.clone(), f64::from(token.score))).collect();
    let model = Unigram::from(vocab, unknown, byte_fallback).map_err(wrong)?;

    let prefix_space = metadata.bool("tokenizer.ggml.add_space_prefix")?.unwrap_or(true);
    let mut normalizers: Vec<NormalizerWrapper> = Vec::new();
    if let Some(map) = metadata.array(CHARACTER_MAP, &[ValueKind::U8, ValueKind::I8])? {
        let map = map.bytes();
        if !map.is_empty() {
            character_map::check(map).map_err(|problem| ConvertError::setting(path, CHARACTER_MAP, problem))?;
            let map = Precompiled::from(map).map_err(|e| ConvertError::setting(path, CHARACTER_MAP, e))?;
            normalizers.push(map.into());
        }
    }
    if metadata.bool("tokenizer.ggml.remove_extra_whitespaces")?.unwrap_or(false) {
        // Spaces only, not the other white space.
        for (pattern, kept) in [("^ +| +$", ""), (" {2,}", " ")] {
            let pattern = ReplacePattern::Regex(pattern.to_owned());
            normalizers.push(Replace::new(pattern, kept).map_err(wrong)?.into());
        }
    }
    let mut decoders =
        vec![Replace::new(SPACE, " ").map_err(wrong)?.into(), ByteFallback::new().into(), Fuse::new().into()];
    if prefix_space {
        normalizers.push(Prepend::new(SPACE.to_owned()).into());
        decoders.push(Strip::new(' ', 1, 0).into());
    }
    normalizers.push(Replace::new(" ", SPACE).map_err(wrong)?.into());
    let parts = Parts {
        model: model.into(),
        normalizer: Some(Normalizers::new(normalizers).into()),
        pre_tokenizer: None,
        decoder: Decoders::new(decoders).into(),
    };
    finish(file, tokens, parts)
}
