//! What comes of a turn: events on the way, an account at the end.

use std::time::Duration;

use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::overflow::{Overflow, Overflowed};

/// What happens while an answer is generated.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The prompt is being read: `done` of `total` tokens are in the cache, counting those that were there before.
    Prompt {
        /// Tokens in the cache.
        done: usize,
        /// Tokens of the whole prompt.
        total: usize,
    },
    /// The model drew a token of the answer. The text it brings, if any, follows.
    Token {
        /// The token.
        id: u32,
        /// How many tokens the answer has with it.
        generated: usize,
    },
    /// The next piece of the answer's text. All pieces together are [`Turn::text`].
    Text(&'a str),
    /// The conversation with the new message is `tokens` long and does not fit. What is done about it begins, and may
    /// take as long as an answer.
    Overflowing {
        /// What is to be done.
        policy: Overflow,
        /// Tokens of the prompt that does not fit.
        tokens: usize,
    },
    /// A summary of older turns is being generated.
    Summarizing {
        /// How many tokens it has so far.
        tokens: usize,
    },
    /// The context no longer holds the whole conversation. This counts once the turn is accepted: after an error, and
    /// for a turn that is withdrawn, the conversation is as it was before.
    Overflow(&'a Overflowed),
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// The model said that it is done.
    Eos,
    /// A stop string came up.
    StopString,
    /// The limit of tokens was reached.
    MaxTokens,
    /// The context is full, and generation stopped. The answer so far is part of the conversation; before the next turn
    /// the [`Overflow`] policy makes room.
    ContextFull,
    /// The caller called it off.
    Cancelled,
    /// The request's deadline passed.
    Deadline,
}

impl StopReason {
    /// The name that is used in JSON: `eos`, `stop_string`, `max_tokens`, `context_full`, `cancelled`, `deadline`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Eos => "eos",
            Self::StopString => "stop_string",
            Self::MaxTokens => "max_tokens",
            Self::ContextFull => "context_full",
            Self::Cancelled => "cancelled",
            Self::Deadline => "deadline",
        }
    }
}

/// An answer and what it cost.
///
/// It serializes with the durations in milliseconds, as `first_token_ms` and `per_token_ms`, and with `overflow` only if
/// there was one.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// The answer.
    pub text: String,
    /// Tokens of the prompt that were in the cache already.
    pub tokens_reused: usize,
    /// Tokens of the prompt that had to be computed.
    pub tokens_computed: usize,
    /// Tokens of the answer, without the one that ended it.
    pub tokens_generated: usize,
    /// Tokens that were guessed from what was said before and read along, to be checked.
    pub tokens_drafted: usize,
    /// Of these, those that the answer went on with: they cost no call of their own.
    pub tokens_accepted: usize,
    /// From the call to the first token of the answer; zero if there was none.
    pub first_token: Duration,
    /// Mean time of each later token; zero if there was at most one.
    pub per_token: Duration,
    /// How many tokens of the transcript the cache holds now.
    pub position: usize,
    /// How many it can hold.
    pub context: usize,
    /// Why the answer ended.
    pub stop_reason: StopReason,
    /// What had to go before the prompt fitted, if it did not.
    pub overflow: Option<Overflowed>,
}

impl Turn {
    /// The account of a request that was called off before anything was done for it.
    pub(crate) fn withdrawn(stop_reason: StopReason, position: usize, context: usize) -> Self {
        Self {
            text: String::new(),
            tokens_reused: 0,
            tokens_computed: 0,
            tokens_generated: 0,
            tokens_drafted: 0,
            tokens_accepted: 0,
            first_token: Duration::ZERO,
            per_token: Duration::ZERO,
            position,
            context,
            stop_reason,
            overflow: None,
        }
    }
}

impl Serialize for Turn {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Turn", 11 + usize::from(self.overflow.is_some()))?;
        fields.serialize_field("text", &self.text)?;
        fields.serialize_field("tokens_reused", &self.tokens_reused)?;
        fields.serialize_field("tokens_computed", &self.tokens_computed)?;
        fields.serialize_field("tokens_generated", &self.tokens_generated)?;
        fields.serialize_field("tokens_drafted", &self.tokens_drafted)?;
        fields.serialize_field("tokens_accepted", &self.tokens_accepted)?;
        fields.serialize_field("first_token_ms", &milliseconds(self.first_token))?;
        fields.serialize_field("per_token_ms", &milliseconds(self.per_token))?;
        fields.serialize_field("position", &self.position)?;
        fields.serialize_field("context", &self.context)?;
        fields.serialize_field("stop_reason", &self.stop_reason)?;
        match &self.overflow {
            Some(overflow) => fields.serialize_field("overflow", overflow)?,
            None => fields.skip_field("overflow")?,
        }
        fields.end()
    }
}

/// Milliseconds to the microsecond.
fn milliseconds(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_the_documented_names() {
        let turn = Turn {
            text: "Hi".into(),
            tokens_reused: 1,
            tokens_computed: 2,
            tokens_generated: 3,
            tokens_drafted: 4,
            tokens_accepted: 2,
            first_token: Duration::from_micros(1500),
            per_token: Duration::from_millis(2),
            position: 5,
            context: 8,
            stop_reason: StopReason::MaxTokens,
            overflow: None,
        };
        assert_eq!(
            serde_json::to_string(&turn).unwrap(),
            r#"{"text":"Hi","tokens_reused":1,"tokens_computed":2,"tokens_generated":3,"tokens_drafted":4,"tokens_accepted":2,"first_token_ms":1.5,"per_token_ms":2.0,"position":5,"context":8,"stop_reason":"max_tokens"}"#
        );
    }

    #[test]
    fn names_are_those_of_the_json() {
        for reason in [StopReason::Eos, StopReason::StopString, StopReason::ContextFull, StopReason::Deadline] {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.name());
        }
    }
}
