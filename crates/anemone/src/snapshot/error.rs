//! Why a snapshot is not made or not used.

use std::io;

use super::CacheTensor;

/// Why a snapshot could not be written, or is not used. The session is then as it was before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The runner's states can't be read and written.
    #[error("this model's runtime cannot read and write its states")]
    Unsupported,
    /// The system failed.
    #[error("cannot be {what}: {source}")]
    Io {
        /// What was tried: `read`, `written`, …
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The file is something else.
    #[error("is no snapshot")]
    NotASnapshot,
    /// The file's format is another.
    #[error("has format version {found}; this build reads version {known}")]
    Version {
        /// The file's.
        found: u32,
        /// The one that is known.
        known: u32,
    },
    /// The file is shorter or longer than it says.
    #[error("is {found} bytes long and should be {expected}: it was cut off or added to")]
    Length {
        /// Bytes that it should have, as far as was read.
        expected: u64,
        /// Bytes that it has.
        found: u64,
    },
    /// The bytes are not those that were written.
    #[error("is damaged: {what}, at byte {offset}, does not match its checksum")]
    Damaged {
        /// The part.
        what: String,
        /// Where it begins.
        offset: u64,
    },
    /// The header, though undamaged, makes no sense.
    #[error("has a header that makes no sense: {problem}")]
    Malformed {
        /// What is wrong.
        problem: String,
    },
    /// Another version of Anemone made it, whose numbers may differ.
    #[error("was made by version {found} of Anemone; this is {expected}, whose numbers may differ")]
    Build {
        /// This one.
        expected: String,
        /// That one.
        found: String,
    },
    /// Another package made it.
    #[error("belongs to another package: digest {found}, here {expected}")]
    Package {
        /// The digest of the open package.
        expected: String,
        /// The digest of the snapshot's.
        found: String,
    },
    /// It was made with another context length.
    #[error("was made for a context of {found} tokens, here it is {expected}")]
    Context {
        /// The open package's.
        expected: usize,
        /// The snapshot's.
        found: usize,
    },
    /// Its states lie in another way.
    #[error("holds {found}, expected {expected}")]
    Layout {
        /// The states of the open package.
        expected: String,
        /// The states of the snapshot.
        found: String,
    },
    /// It is of another conversation.
    #[error("holds other tokens: {common} of its {position} are those of the conversation")]
    Tokens {
        /// How many are the same from the beginning.
        common: usize,
        /// How many it holds.
        position: usize,
    },
    /// The runtime failed to read or write a state.
    #[error("the state cannot be copied: {source}")]
    State {
        /// What it said.
        source: crate::RunnerError,
    },
    /// It alone is more than may be kept.
    #[error("would take {needed} bytes; at most {limit} may be kept")]
    TooLarge {
        /// Bytes of the cache.
        needed: u64,
        /// Most bytes.
        limit: u64,
    },
}

impl SnapshotError {
    pub(super) fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| match source.kind() {
            // The length was checked, so somebody cut the file in between.
            io::ErrorKind::UnexpectedEof => Self::Io { what, source: io::Error::other("it ended too soon") },
            _ => Self::Io { what, source },
        }
    }

    /// The states of a layout, for errors.
    pub(super) fn describe(tensors: &[CacheTensor]) -> String {
        let all: Vec<String> = tensors.iter().map(ToString::to_string).collect();
        if all.is_empty() { "no states".to_owned() } else { all.join(", ") }
    }
}
