//! What takes up the context.

use serde::Serialize;

use super::Session;
use super::earlier::{Draft, Earlier};
use super::transcript::common_prefix;
use crate::{Rendering, Result, Runner};

/// How the tokens of a context are shared out. What is left of `context` is free.
///
/// After a turn all parts together are [`Session::transcript`]: what was accepted, and nothing that a template would put
/// after it. `read` of them are in the cache ([`Session::position`]).
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
    /// How many of these tokens the cache holds. The next message reads the others: the last one of an answer, what was
    /// edited, or all that no snapshot held.
    pub read: usize,
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
        let transcript = self.transcript();
        if draft.entries.is_empty() {
            // Tokens without messages are all there is to a conversation that was completed.
            (usage.turns, usage.read) = (transcript.len(), self.position());
            return Ok(usage);
        }
        let prompt = self.rendered(&draft, &rendering)?;
        let (whole, answered) = (prompt.tokens.len(), prompt.ends.last().map_or(0, |&(_, end)| end));
        let common = common_prefix(transcript, &prompt.tokens);
        // The template closes the last answer, but those tokens come with the next message; what was edited comes as well.
        let closed = draft.entries.last().is_some_and(|last| last.message.role == "assistant");
        let held = common == whole || (closed && common == transcript.len() && common >= answered);
        let used = if held { transcript.len() } else { whole }.min(usage.context);
        usage.read = if held { self.position() } else { common.min(self.position()) };
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
        usage.system = usage.system.min(used);
        if draft.earlier.summary.is_some() {
            draft.earlier = Earlier::default().into();
            usage.summary = whole.saturating_sub(self.size(&draft, &rendering)?).min(used - usage.system);
        }
        usage.turns = used - usage.system - usage.summary;
        Ok(usage)
    }
}
