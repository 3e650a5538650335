//! What splits words into tokens.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use tokenizers::models::bpe::BpeTrainer;
use tokenizers::models::{ModelWrapper, TrainerWrapper};
use tokenizers::{DecoderWrapper, NormalizerWrapper, PostProcessorWrapper, PreTokenizerWrapper, Token, TokenizerImpl};

use super::pairs::Pairs;

/// A tokenizer with all the parts of the `tokenizers` crate; its model may be one of our own.
pub type Tokenizer = TokenizerImpl<Model, NormalizerWrapper, PreTokenizerWrapper, PostProcessorWrapper, DecoderWrapper>;

/// The model of a tokenizer. Copies share its memory.
#[derive(Clone, Debug)]
pub struct Model(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Pairs(Arc<Pairs>),
    Crate(Arc<ModelWrapper>),
}

impl From<Pairs> for Model {
    fn from(pairs: Pairs) -> Self {
        Self(Kind::Pairs(Arc::new(pairs)))
    }
}

impl<'de> Deserialize<'de> for Model {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ModelWrapper::deserialize(deserializer).map(|model| Self(Kind::Crate(Arc::new(model))))
    }
}

impl tokenizers::Model for Model {
    type Trainer = TrainerWrapper;

    fn tokenize(&self, word: &str) -> tokenizers::Result<Vec<Token>> {
        match &self.0 {
            Kind::Pairs(pairs) => Ok(pairs.tokenize(word)),
            Kind::Crate(model) => model.tokenize(word),
        }
    }

    fn token_to_id(&self, token: &str) -> Option<u32> {
        match &self.0 {
            Kind::Pairs(pairs) => pairs.words().id(token),
            Kind::Crate(model) => model.token_to_id(token),
        }
    }

    fn id_to_token(&self, id: u32) -> Option<String> {
        match &self.0 {
            Kind::Pairs(pairs) => pairs.words().word(id).map(str::to_owned),
            Kind::Crate(model) => model.id_to_token(id),
        }
    }

    fn get_vocab(&self) -> HashMap<String, u32> {
        match &self.0 {
            Kind::Pairs(pairs) => pairs.vocabulary(),
            Kind::Crate(model) => model.get_vocab(),
        }
    }

    fn get_vocab_size(&self) -> usize {
        match &self.0 {
            Kind::Pairs(pairs) => pairs.words().len(),
            Kind::Crate(model) => model.get_vocab_size(),
        }
    }

    fn save(&self, folder: &Path, prefix: Option<&str>) -> tokenizers::Result<Vec<PathBuf>> {
        match &self.0 {
            Kind::Pairs(_) => Err("a vocabulary that was read for use is not written again".into()),
            Kind::Crate(model) => model.save(folder, prefix),
        }
    }

    fn get_trainer(&self) -> TrainerWrapper {
        match &self.0 {
            Kind::Pairs(_) => TrainerWrapper::BpeTrainer(BpeTrainer::default()),
            Kind::Crate(model) => model.get_trainer(),
        }
    }
}
