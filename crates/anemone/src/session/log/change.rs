//! The JSON of records: how a conversation changed.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::super::earlier::Earlier;
use super::super::prompt::{Entry, Generated};
use crate::Message;

/// Whose a log is: its first record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Begin {
    /// The version that wrote it.
    pub(crate) build: String,
    /// The digest of the package, if the runner has one.
    pub(crate) package: Option<String>,
    /// The digest of the tokenizer, without which the tokens mean nothing.
    pub(crate) tokenizer: String,
    /// Where the tokenizer lay, for those who read the log without the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tokenizer_file: Option<String>,
    pub(crate) vocabulary: usize,
}

impl Begin {
    pub(super) fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("strings and numbers")
    }
}

/// How a conversation changed: so many of its messages and tokens stay, and these follow on them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Change {
    /// What was done, for people.
    pub(super) what: String,
    /// When, in milliseconds since 1970.
    pub(super) at: u64,
    /// What an overflow took out of the context; none if as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) gone: Option<Gone>,
    pub(super) keep_messages: usize,
    pub(super) messages: Vec<Said>,
    pub(super) keep_tokens: usize,
    pub(super) tokens: Vec<u32>,
    /// When the conversation began, for templates that ask, in nanoseconds since 1970; none if as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) began: Option<u64>,
    /// Tokens of an answer follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) open: Option<Open>,
}

/// What the context no longer holds: so many messages as before, and these after them; and what stands for them all.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Gone {
    keep: usize,
    messages: Vec<Message>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
}

impl Change {
    /// All that a conversation is.
    pub(super) fn whole(what: &str, entries: &[Entry], earlier: &Earlier, tokens: &[u32], began: u64) -> Self {
        Self {
            what: what.to_owned(),
            at: nanoseconds(SystemTime::now()) / 1_000_000,
            gone: (*earlier != Earlier::default()).then(|| Gone::of(earlier, &Earlier::default())),
            messages: entries.iter().map(Said::of).collect(),
            tokens: tokens.to_vec(),
            began: Some(began),
            ..Self::default()
        }
    }
}

impl Gone {
    pub(super) fn of(earlier: &Earlier, before: &Earlier) -> Self {
        let keep = earlier.messages.iter().zip(&before.messages).take_while(|(a, b)| a == b).count();
        Self { keep, messages: earlier.messages[keep..].to_vec(), summary: earlier.summary.clone() }
    }

    /// What it was made of, if it fits what was before.
    pub(super) fn after(self, before: &Earlier) -> Option<Earlier> {
        let mut messages = before.messages.get(..self.keep)?.to_vec();
        messages.extend(self.messages);
        Some(Earlier { messages, summary: self.summary })
    }

    /// As [`Gone::after`], of a log that was damaged: with how many messages are lost.
    pub(super) fn after_what_is_left(self, before: &Earlier) -> (Earlier, usize) {
        let left = self.keep.min(before.messages.len());
        let messages = before.messages[..left].iter().cloned().chain(self.messages).collect();
        (Earlier { messages, summary: self.summary }, self.keep - left)
    }
}

/// What the tokens that follow are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Open {
    /// The answer to the last message, which stands behind this text.
    Answer { before: String },
    /// What goes on after the tokens; there are no messages.
    Completion,
}

/// A message, and its tokens if the model generated it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Said {
    message: Message,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    generated: Option<Answer>,
    #[serde(default, skip_serializing_if = "is_zero")]
    end: usize,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    /// None if it is the message's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    tokens: Vec<u32>,
    ends: Vec<usize>,
    before: String,
}

impl Said {
    pub(super) fn of(entry: &Entry) -> Self {
        let generated = entry.generated.as_ref().map(|generated| Answer {
            text: (generated.text != entry.message.content).then(|| generated.text.clone()),
            tokens: generated.tokens.clone(),
            ends: generated.ends.clone(),
            before: generated.before.clone(),
        });
        Self { message: entry.message.clone(), generated, end: entry.end }
    }

    /// What it was made of, if it makes sense.
    pub(super) fn entry(self) -> Option<Entry> {
        let Self { message, generated, end } = self;
        let generated = match generated {
            Some(Answer { text, tokens, ends, before }) => {
                let text = text.unwrap_or_else(|| message.content.clone());
                let fit =
                    ends.len() == tokens.len() && ends.is_sorted() && ends.last().is_none_or(|&e| e <= text.len());
                Some(Arc::new(fit.then_some(Generated { text, tokens, ends, before })?))
            }
            None => None,
        };
        Some(Entry { message, generated, end })
    }
}

/// Nanoseconds since 1970, as far as they fit.
pub(crate) fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

pub(crate) fn from_nanoseconds(nanoseconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_nanos(nanoseconds)
}
