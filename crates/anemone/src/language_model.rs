//! A runner together with the words to speak to it.

use crate::{ChatTemplate, Generation, Runner, Tokenizer};

/// A model that can hold conversations: its runner, tokenizer, chat template and habits. Shared by all its sessions.
#[derive(Debug)]
pub struct LanguageModel<R> {
    /// Turns tokens into logits.
    pub runner: R,
    /// Turns text into tokens and back.
    pub tokenizer: Tokenizer,
    /// Turns messages into text.
    pub template: ChatTemplate,
    /// The tokens that end an answer.
    pub end_tokens: Vec<u32>,
    /// The settings that its makers recommend.
    pub generation: Generation,
}

impl<R: Runner> LanguageModel<R> {
    /// Puts a model together. End tokens are those with the usual names, and settings the default ones, until changed.
    pub fn new(runner: R, tokenizer: Tokenizer, template: ChatTemplate) -> Self {
        let end_tokens = tokenizer.usual_end_tokens();
        Self { runner, tokenizer, template, end_tokens, generation: Generation::default() }
    }
}
