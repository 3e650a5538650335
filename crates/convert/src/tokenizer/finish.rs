//! What all rebuilt tokenizers have in common: added tokens, and the tokens put around a text.

use std::collections::HashMap;
use std::path::Path;

use serde_json::json;
use tokenizers::processors::template::TemplateProcessing;
use tokenizers::{
    AddedToken, DecoderWrapper, ModelWrapper, NormalizerWrapper, PostProcessorWrapper, PreTokenizerWrapper, Tokenizer,
};

use super::vocabulary::{Token, TokenType};
use crate::error::{ConvertError, Result};
use crate::source::gguf::Gguf;

/// The parts in which kinds of vocabulary differ.
pub(super) struct Parts {
    pub(super) model: ModelWrapper,
    pub(super) normalizer: Option<NormalizerWrapper>,
    pub(super) pre_tokenizer: Option<PreTokenizerWrapper>,
    pub(super) decoder: DecoderWrapper,
}

/// Assembles the tokenizer and gives its `tokenizer.json`.
pub(super) fn finish(file: &Gguf, tokens: &[Token], parts: Parts) -> Result<String> {
    let wrong = |e: tokenizers::Error| ConvertError::tokenizer(file.path(), e);
    let mut tokenizer = Tokenizer::new(parts.model);
    tokenizer.with_normalizer(parts.normalizer).map_err(wrong)?;
    tokenizer.with_pre_tokenizer(parts.pre_tokenizer);
    tokenizer.with_decoder(Some(parts.decoder));
    tokenizer.with_post_processor(around(file, tokens)?);
    let swallows = swallows_space(file)?;
    let added = tokens.iter().filter_map(|token| {
        let special = match token.kind {
            TokenType::Control | TokenType::Unknown => true,
            TokenType::UserDefined => false,
            TokenType::Normal | TokenType::Unused | TokenType::Byte => return None,
        };
        let swallows = swallows && !KEEP_SPACE.contains(&token.text.as_str());
        Some(AddedToken::from(token.text.as_str(), special).normalized(false).rstrip(swallows))
    });
    tokenizer.add_tokens(added).map_err(wrong)?;
    tokenizer.to_string(false).map_err(wrong)
}

/// Tokens of Phi-3 that leave the white space behind them alone.
const KEEP_SPACE: &[&str] = &["<unk>", "<s>", "<|endoftext|>"];

/// Whether added tokens take the white space behind them, as Phi-3's do. GGUF files do not say it; llama.cpp knows it by the
/// model's name (`llama_vocab::impl::load`). Later models of the architecture have other vocabularies.
fn swallows_space(file: &Gguf) -> Result<bool> {
    let metadata = file.metadata();
    let phi3 = metadata.str("general.architecture")? == Some("phi3");
    Ok(phi3 && metadata.str("tokenizer.ggml.model")? == Some("llama"))
}

/// The post-processor that puts the begin and end tokens around a text, if the file asks for them.
fn around(file: &Gguf, tokens: &[Token]) -> Result<Option<PostProcessorWrapper>> {
    let generation = super::GenerationSettings::from_gguf(file)?;
    let bos = generation.bos.filter(|_| generation.add_bos);
    let eos = generation.eos.first().copied().filter(|_| generation.add_eos);
    if bos.is_none() && eos.is_none() {
        return Ok(None);
    }
    let text = |id: u32| tokens[id as usize].text.as_str();
    let special = |id: u32, of: usize| json!({"SpecialToken": {"id": text(id), "type_id": of}});
    let sequence = |name: &str, of: usize| {
        let mut pieces: Vec<_> = bos.map(|id| special(id, of)).into_iter().collect();
        pieces.push(json!({"Sequence": {"id": name, "type_id": of}}));
        pieces.extend(eos.map(|id| special(id, of)));
        pieces
    };
    let used: serde_json::Map<_, _> = bos
        .into_iter()
        .chain(eos)
        .map(|id| (text(id).to_owned(), json!({"id": text(id), "ids": [id], "tokens": [text(id)]})))
        .collect();
    let pair = [sequence("A", 0), sequence("B", 1)].concat();
    let processor = json!({
        "type": "TemplateProcessing",
        "single": sequence("A", 0),
        "pair": pair,
        "special_tokens": used,
    });
    match serde_json::from_value::<TemplateProcessing>(processor) {
        Ok(processor) => Ok(Some(processor.into())),
        Err(e) => Err(ConvertError::tokenizer(file.path(), e)),
    }
}

/// The id of each text. Two tokens of one text are refused, since one of them could never be written.
pub(super) fn ids<'a>(path: &Path, tokens: &'a [Token]) -> Result<HashMap<&'a str, u32>> {
    let mut ids = HashMap::with_capacity(tokens.len());
    for (id, token) in (0u32..).zip(tokens) {
        if let Some(other) = ids.insert(token.text.as_str(), id) {
            let problem = format!("tokens {other} and {id} are both {:?}", token.text);
            return Err(ConvertError::tokenizer(path, problem));
        }
    }
    Ok(ids)
}
