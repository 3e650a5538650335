//! What takes up the context.

use serde::Serialize;

use super::Session;
use super::earlier::{Draft, Earlier};
use crate::{Rendering, Result, Runner};

/// How the tokens of a context are shared out. What is left of `context` is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens that the context holds.
    pub context: usize,
    /// Tokens of the system message.
    pub system: usize,
    /// Tokens of the summary that stands for earlier turns.
    pub summary: usize,
    /// Tokens of everything else: messages and answers, and what the template puts around them.
    pub turns: usize,
    /// Tokens that stay free for an answer.
    pub margin: usize,
}

impl Usage {
    /// Tokens that are taken.
    pub fn used(&self) -> usize {
        self.system + self.summary + self.turns
    }

    /// Tokens that are not.
    pub fn free(&self) -> usize {
        self.context.saturating_sub(self.used())
    }
}

impl<R: Runner> Session<R> {
    /// What takes up the context.
    ///
    /// # Errors
    /// [`Error::TemplateRefused`](crate::Error::TemplateRefused) for a conversation that the template doesn't take.
    pub fn usage(&self) -> Result<Usage> {
        let rendering = Rendering { add_generation_prompt: false, now: self.began, ..Rendering::default() };
        let mut usage = Usage { context: self.context(), margin: self.margin(), ..Usage::default() };
        let mut draft = Draft { entries: self.entries.clone(), earlier: self.earlier.clone() };
        if draft.entries.is_empty() {
            // Tokens without messages are all there is to a conversation that was completed.
            usage.turns = self.transcript().len();
            return Ok(usage);
        }
        let head = draft.head();
        if head > 0 {
            let alone = Draft { entries: draft.entries[..head].to_vec(), earlier: Default::default() };
            // Some templates take no system message without a user's.
            usage.system = match self.size(&alone, &rendering) {
                Ok(size) => size,
                Err(_) => {
                    let text: String = alone.entries.iter().map(|entry| entry.message.content.as_str()).collect();
                    self.model.tokenizer.encode_continuing(&text)?.len()
                }
            };
        }
        if draft.entries.len() == head {
            return Ok(usage);
        }
        let whole = self.size(&draft, &rendering)?;
        if draft.earlier.summary.is_some() {
            draft.earlier = Earlier::default().into();
            usage.summary = whole.saturating_sub(self.size(&draft, &rendering)?);
        }
        usage.turns = whole.saturating_sub(usage.system + usage.summary);
        Ok(usage)
    }
}
