//! What can go wrong, said once: where, what was expected, what was found, and what to do about it.

use std::path::PathBuf;

/// The result of every fallible call in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call into the library failed.
///
/// After an error from a [`Session`](crate::Session) its conversation is as it was before the call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file or a text is larger than this crate takes from outside.
    #[error("{what} is {found} bytes long; at most {limit} are taken")]
    TooLarge {
        /// Which file or text.
        what: String,
        /// Its length in bytes.
        found: u64,
        /// The bound in bytes.
        limit: u64,
    },
    /// A tokenizer could not be loaded, or failed on a text.
    #[error("tokenizer: {problem}")]
    Tokenizer {
        /// What failed, in the tokenizer's words.
        problem: String,
    },
    /// The chat template is not valid, or failed while rendering.
    #[error("chat template: {problem}")]
    Template {
        /// What failed, with its line.
        problem: String,
    },
    /// The chat template itself refused the messages (`raise_exception`).
    #[error("the model's chat template refuses these messages: {reason}")]
    TemplateRefused {
        /// What the template said.
        reason: String,
    },
    /// A generation setting is out of its range.
    #[error("setting `{name}` is {found}; expected {expected}")]
    Setting {
        /// The setting's name.
        name: &'static str,
        /// The value that was given.
        found: String,
        /// Its range.
        expected: &'static str,
    },
    /// The model gave logits that no token can be drawn from.
    #[error(
        "the model's logits cannot be sampled: {problem}; this points at a broken package or a numeric overflow in it"
    )]
    Logits {
        /// What is wrong with them, with the first bad token id.
        problem: String,
    },
    /// A prompt does not fit into the context; nothing was changed.
    #[error(
        "the conversation with this message is {needed} tokens long and the context holds {context}, of which {reserved} \
         are kept free for the answer; shorten the message, undo or reset, or convert the model with a longer context"
    )]
    ContextFull {
        /// Length of the whole prompt, in tokens.
        needed: usize,
        /// Capacity of the context, in tokens.
        context: usize,
        /// Tokens of the context that must stay free for the answer.
        reserved: usize,
    },
    /// A call asked for something that the conversation doesn't have.
    #[error("{operation}: {problem}")]
    Conversation {
        /// The call.
        operation: &'static str,
        /// What is missing.
        problem: String,
    },
    /// The model failed while it was fed.
    #[error("the model failed at position {position}, fed {tokens} token(s): {source}")]
    Model {
        /// Position of the first token of the failing call.
        position: usize,
        /// How many tokens the call had.
        tokens: usize,
        /// The runtime's own error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
