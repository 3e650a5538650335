//! What happens when a conversation outgrows its context. One policy, one file.

pub(crate) mod drop_oldest;
pub(crate) mod stop;
pub(crate) mod summarize;

use serde::{Serialize, Serializer};

use crate::Message;

/// What to do when a conversation with its next message does not fit into the context.
///
/// It is looked at before anything is computed for a turn. A conversation fits if [`margin`](crate::Session::margin)
/// tokens of the context stay free for the answer. What was cut is told by [`Event::Overflow`](crate::Event::Overflow)
/// and [`Turn::overflow`](crate::Turn::overflow). A message that would not fit alone is refused under every policy
/// ([`Error::MessageTooLong`](crate::Error::MessageTooLong)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Overflow {
    /// The model itself sums up the older turns; the conversation goes on with the system message, the summary, marked
    /// as one, and the last turns word for word. If the summary is of no use, as [`Overflow::DropOldest`].
    #[default]
    Summarize,
    /// The oldest turns are dropped, whole ones, and what is left is read again.
    DropOldest,
    /// The message is refused before anything changes, naming both sizes ([`Error::ContextFull`](crate::Error)).
    Stop,
}

impl Overflow {
    /// The name that is used in JSON and on the command line: `summarize`, `drop-oldest`, `stop`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Summarize => "summarize",
            Self::DropOldest => "drop-oldest",
            Self::Stop => "stop",
        }
    }

    /// How many tokens of a context stay free for an answer, unless told otherwise: an eighth, at most 512.
    pub fn default_margin(context: usize) -> usize {
        (context / 8).min(512)
    }
}

/// What an overflow cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Overflowed {
    /// What was done: not always what was asked for, see `fallback`.
    pub policy: Overflow,
    /// Tokens of the prompt that did not fit.
    pub tokens_before: usize,
    /// Tokens of the prompt that took its place.
    pub tokens_after: usize,
    /// How many turns (a user's message and what followed on it) the context no longer holds.
    pub turns_dropped: usize,
    /// Their messages. JSON has their number, as `messages_dropped`.
    #[serde(rename = "messages_dropped", serialize_with = "count")]
    pub dropped: Vec<Message>,
    /// What stands for all that the context no longer holds, if there is a summary.
    pub summary: Option<String>,
    /// Why a summary was asked for and is not used.
    pub fallback: Option<String>,
}

fn count<S: Serializer>(messages: &[Message], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(messages.len() as u64)
}

/// The context, as a prompt finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Tokens that it holds.
    pub(crate) context: usize,
    /// Tokens that must stay free.
    pub(crate) reserved: usize,
}

impl Room {
    /// Without room for a single token there is no answer.
    pub(crate) fn new(context: usize, margin: usize) -> Self {
        Self { context, reserved: margin.max(1) }
    }

    /// The longest prompt that fits.
    pub(crate) fn limit(self) -> usize {
        self.context.saturating_sub(self.reserved)
    }

    /// What is left after an overflow should be no longer than this, or the next turn would bring another.
    pub(crate) fn target(self) -> usize {
        self.limit() / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margins_are_a_share_of_the_context() {
        assert_eq!([0, 7, 256, 4096, 131_072].map(Overflow::default_margin), [0, 0, 32, 512, 512]);
        assert_eq!((Room::new(100, 0).limit(), Room::new(100, 30).limit(), Room::new(100, 200).limit()), (99, 70, 0));
    }

    #[test]
    fn names_are_those_of_the_json() {
        for policy in [Overflow::Summarize, Overflow::DropOldest, Overflow::Stop] {
            assert_eq!(serde_json::to_value(policy).unwrap(), policy.name());
        }
    }
}
