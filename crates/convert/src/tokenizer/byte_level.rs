//! Byte-level byte-pair vocabularies (`tokenizer.ggml.model` = `gpt2`): SmolLM2, Llama 3, Qwen and others.

use tokenizers::models::bpe::BPE;
use tokenizers::normalizers::NFC;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{PreTokenizerWrapper, SplitDelimiterBehavior};

use super::finish::{Parts, finish, ids};
use super::limits::MAX_MERGES;
use super::pre_tokenizer::{self, Recipe};
use super::vocabulary::Token;
use crate::error::{ConvertError, Result};
use crate::source::gguf::{Gguf, ValueKind};

const PRE: &str = "tokenizer.ggml.pre";
const MERGES: &str = "tokenizer.ggml.merges";

/// Builds the `tokenizer.json`.
pub(super) fn build(file: &Gguf, tokens: &[Token]) -> Result<String> {
    let (path, metadata) = (file.path(), file.metadata());
    let name = metadata.str(PRE)?.unwrap_or_default();
    let recipe = pre_tokenizer::recipe(name).ok_or_else(|| {
        let problem = format!("{name:?} is not a way of cutting that is known: {}", pre_tokenizer::known());
        ConvertError::setting(path, PRE, problem)
    })?;
    let prefix_space = metadata.bool("tokenizer.ggml.add_space_prefix")?.unwrap_or(false);
    let wrong = |e: tokenizers::Error| ConvertError::tokenizer(path, e);
    let vocab: Vec<(String, u32)> = ids(path, tokens)?.into_iter().map(|(text, id)| (text.to_owned(), id)).collect();
    let merges = merges(file, tokens)?;
    let model = BPE::builder()
        .vocab_and_merges(vocab.into_iter().collect::<tokenizers::models::bpe::Vocab>(), merges)
        .ignore_merges(recipe.ignore_merges)
        .build()
        .map_err(wrong)?;
    let parts = Parts {
        model: model.into(),
        normalizer: recipe.compose.then(|| NFC.into()),
        pre_tokenizer: Some(cut(recipe, prefix_space).map_err(wrong)?),
        decoder: ByteLevel::new(prefix_space, true, recipe.gpt2).into(),
    };
    finish(file, tokens, parts)
}

fn cut(recipe: &Recipe, prefix_space: bool) -> tokenizers::Result<PreTokenizerWrapper> {
    let mut steps: Vec<PreTokenizerWrapper> = Vec::new();
    for pattern in recipe.split {
        let pattern = SplitPattern::Regex((*pattern).to_owned());
        steps.push(Split::new(pattern, SplitDelimiterBehavior::Isolated, false)?.into());
    }
    let bytes = ByteLevel::new(prefix_space, true, recipe.gpt2).into();
    if steps.is_empty() {
        return Ok(bytes);
    }
    steps.push(bytes);
    Ok(Sequence::new(steps).into())
}

/// The merges in order of rank. Those of tokens that the vocabulary lacks could never be used and are left out.
fn merges(file: &Gguf, tokens: &[Token]) -> Result<Vec<(String, String)>> {
    let (path, metadata) = (file.path(), file.metadata());
    let stored = metadata
        .array(MERGES, &[ValueKind::String])?
        .ok_or_else(|| ConvertError::setting(path, MERGES, "absent; a byte-pair vocabulary needs its merges"))?;
    if stored.len() > MAX_MERGES {
        let problem = format!("{} merges; at most {MAX_MERGES} are read", stored.len());
        return Err(ConvertError::setting(path, MERGES, problem));
    }
    let ids = ids(path, tokens)?;
    let mut merges = Vec::with_capacity(stored.len());
    let mut left_out = 0;
    let mut joined = String::new();
    for text in stored.texts() {
        let pair = std::str::from_utf8(&text).ok().and_then(|text| text.split_once(' '));
        let known = pair.filter(|(left, right)| {
            joined.clear();
            joined.push_str(left);
            joined.push_str(right);
            [left, right, joined.as_str()].iter().all(|part| ids.contains_key(part))
        });
        match known {
            Some((left, right)) => merges.push((left.to_owned(), right.to_owned())),
            None => left_out += 1,
        }
    }
    if left_out > 0 {
        tracing::warn!(left_out, "merges of tokens that are not in the vocabulary");
    }
    Ok(merges)
}
