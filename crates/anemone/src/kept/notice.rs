//! What there is to say when a session is opened again.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

/// A session that was opened.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Reopened {
    /// It did not exist before.
    pub is_new: bool,
    /// How many messages it has.
    pub messages: usize,
    /// How many tokens its transcript has.
    pub tokens: usize,
    /// How many of them came into the cache from a snapshot. The next turn computes the others.
    pub position: usize,
    /// That snapshot.
    pub snapshot: Option<PathBuf>,
    /// What is not as the last process meant to leave it.
    pub notices: Vec<Notice>,
}

/// Something that whoever opens a session should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "notice", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Notice {
    /// The last answer was interrupted; what there was of it is part of the conversation.
    Interrupted {
        /// How many tokens it has.
        tokens: usize,
    },
    /// The last message was never answered, and is not part of the conversation.
    Unanswered {
        /// The message.
        text: String,
    },
    /// Half a record at the end of the log was cut off; nothing of it was shown.
    Cut {
        /// Its bytes.
        bytes: usize,
    },
    /// The log is damaged in its midst. What comes before the damage was opened; a copy of the whole file was kept.
    Damaged {
        /// The copy.
        copy: PathBuf,
    },
    /// A snapshot can't be used.
    Unusable {
        /// Which, and why.
        problem: String,
    },
    /// Tokens that no snapshot holds; the next turn computes them anew.
    Replay {
        /// How many.
        tokens: usize,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted { tokens } => {
                write!(f, "the last answer was interrupted; its {tokens} tokens are part of the conversation")
            }
            Self::Unanswered { text } => write!(f, "the last message was never answered and is taken back: {text}"),
            Self::Cut { bytes } => write!(f, "half a record ({bytes} bytes) at the end of the log was cut off"),
            Self::Damaged { copy } => write!(
                f,
                "the log is damaged: the conversation goes on from before the damage; all that was there is in {}",
                copy.display()
            ),
            Self::Unusable { problem } => write!(f, "a snapshot is not used: {problem}"),
            Self::Replay { tokens } => {
                write!(f, "no snapshot holds the last {tokens} tokens; they are computed anew with the next message")
            }
        }
    }
}
