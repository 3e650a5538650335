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
    /// The log was damaged. What its intact records tell was recovered; messages that are lost are marked as such where they
    /// stood. The damaged file was kept.
    Damaged {
        /// That file.
        copy: PathBuf,
        /// How many messages are lost.
        lost: usize,
    },
    /// Behind the last record of the conversation the log had more than a kill leaves: a damaged end, or another
    /// conversation's log. None of it is part of the conversation. The file was kept as it was.
    Behind {
        /// That file.
        copy: PathBuf,
        /// How many bytes these are.
        bytes: usize,
        /// Whether another log was found there.
        another: bool,
    },
    /// The log was damaged so that nothing of it is left; the conversation begins anew. The damaged file was kept.
    NothingLeft {
        /// That file.
        copy: PathBuf,
    },
    /// The log was empty; the conversation begins anew.
    Empty,
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
            Self::Damaged { copy, lost } => {
                let lost = match lost {
                    0 => "all messages were recovered".into(),
                    1 => "one message is lost, and marked as such".into(),
                    lost => format!("{lost} messages are lost, and marked as such"),
                };
                write!(f, "the log was damaged: {lost}; the damaged file is {}", copy.display())
            }
            Self::Behind { copy, bytes, another } => {
                let what = match another {
                    true => "belong to another conversation, and are not part of this one",
                    false => "are damaged, and what they told is lost",
                };
                write!(f, "the last {bytes} bytes of the log {what}; the file as it was is {}", copy.display())
            }
            Self::NothingLeft { copy } => write!(
                f,
                "nothing was left in the log that could be read: the conversation begins anew; the damaged file is {}",
                copy.display()
            ),
            Self::Empty => write!(f, "the log was empty: the conversation begins anew"),
            Self::Unusable { problem } => write!(f, "a snapshot is not used: {problem}"),
            Self::Replay { tokens } => {
                write!(f, "no snapshot holds the last {tokens} tokens; they are computed anew with the next message")
            }
        }
    }
}
