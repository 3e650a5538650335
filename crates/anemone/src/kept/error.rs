//! Why a conversation can't be kept or opened again.

use std::io;

/// Why a kept conversation can't be opened or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeepError {
    /// The system failed.
    #[error("cannot be {what}: {source}")]
    Io {
        /// What was tried: `read`, `written`, …
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Another process has it open.
    #[error(
        "the session is open in another process{}; end that one first, or go on under another name",
        owner.map(|pid| format!(" (number {pid})")).unwrap_or_default()
    )]
    Locked {
        /// That process, if it said so.
        owner: Option<u32>,
    },
    /// There is none.
    #[error("there is no such session")]
    Missing,
    /// There is one already.
    #[error("there is a session of that name already")]
    Exists,
    /// A name that can't be one.
    #[error("{name:?} cannot be the name of a session: {problem}")]
    Name {
        /// The name.
        name: String,
        /// Why not.
        problem: &'static str,
    },
    /// The log is empty.
    #[error("its log is empty: nothing is known of what was said; `chat --session` begins the conversation anew")]
    Empty,
    /// No record of the log is left.
    #[error(
        "nothing is left in its log that could be read; `chat --session` keeps the file aside and begins the conversation anew"
    )]
    NothingLeft,
    /// The log is something else.
    #[error(
        "its log is something else: no record of a conversation is in it; move that file away, and the session begins anew, \
         or go on under another name"
    )]
    NotALog,
    /// The log's format is another.
    #[error(
        "its log has format version {found}, and this build reads version {known}; open it with the version of Anemone that \
         wrote it, or a later one, or go on under another name"
    )]
    Version {
        /// The file's.
        found: u32,
        /// The one that is known.
        known: u32,
    },
    /// The log is longer than is read.
    #[error("its log is {found} bytes long, and at most {limit} are read; go on under another name")]
    TooLong {
        /// Its length.
        found: u64,
        /// The bound.
        limit: u64,
    },
    /// The log, though undamaged, makes no sense.
    #[error(
        "its log makes no sense at byte {offset}: {problem}; a later version of Anemone may have written it: open it with that \
         one, or move the file away, and the session begins anew"
    )]
    Malformed {
        /// Where the record begins.
        offset: usize,
        /// What is wrong.
        problem: String,
    },
    /// Its tokens mean something else to this model.
    #[error(
        "it was held with a model that has another tokenizer (digest {found}, here {expected}); open it with that model, or \
         export it"
    )]
    Tokenizer {
        /// The digest of the model's tokenizer.
        expected: String,
        /// That of the session's.
        found: String,
    },
}
