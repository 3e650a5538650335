//! What can go wrong, said once: where, what was expected, what was found, and what to do about it.

use std::path::{Path, PathBuf};

use anemone_cpu::PlanError;
use anemone_mil::MilError;
use anemone_package::bundle::BundleError;

use crate::kept::KeepError;
use crate::signature::Misfit;
use crate::snapshot::SnapshotError;

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
    /// A message does not fit even without the conversation before it; nothing was changed.
    #[error(
        "this message alone is {needed} tokens long, with the system message, and the context holds {context}, of which \
         {reserved} are kept free for the answer; shorten it, or convert the model with a longer context"
    )]
    MessageTooLong {
        /// Length of the prompt with that message alone, in tokens.
        needed: usize,
        /// Capacity of the context, in tokens.
        context: usize,
        /// Tokens of the context that must stay free for the answer.
        reserved: usize,
    },
    /// A session's queue is full.
    #[error("the session is busy: {waiting} requests are waiting, and no more are taken; try again later")]
    Busy {
        /// How many requests are waiting.
        waiting: usize,
    },
    /// A prediction of a session panicked, so nothing is known of its state. Other sessions are not affected.
    #[error(
        "the session is broken and takes no more requests, since a prediction panicked: {said}; begin a new session"
    )]
    Poisoned {
        /// What the panic said.
        said: String,
    },
    /// A session's handle was closed.
    #[error("the session was closed and takes no more requests")]
    Closed,
    /// All states that a pool's budget allows are in use.
    #[error(
        "all {states} states that the memory budget of {budget} bytes allows are in use at this moment; try again later, or \
         give the pool more"
    )]
    PoolFull {
        /// The budget in bytes.
        budget: u64,
        /// How many states it allows.
        states: u64,
    },
    /// The system starts no thread for a session.
    #[error("no thread can be started for the session: {source}")]
    Thread {
        /// What the system said.
        source: std::io::Error,
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
    /// The path leads to something that is no model.
    #[error("{}: {found}; {remedy}", path.display())]
    NotAModel {
        /// The path.
        path: PathBuf,
        /// What is there.
        found: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A converted folder is broken.
    #[error(transparent)]
    Bundle(Box<BundleError>),
    /// The package cannot be read, or its program not be used.
    #[error("{}", program(path, source))]
    Program {
        /// The package.
        path: PathBuf,
        /// Everything that is wrong with it.
        source: Box<MilError>,
    },
    /// The package declares no states, so it forgets everything after each call.
    #[error(
        "{}: the package has no states, so no conversation can be kept in it: every turn would read everything again. \
         Convert the model with `anemone convert`, or with coremltools by giving `states` a list of `StateType`s and \
         iOS 18 as the target (a dictionary is taken without a word, and gives a package like this one)",
        path.display()
    )]
    Stateless {
        /// The package.
        path: PathBuf,
    },
    /// A state is declared and never written, so nothing is remembered in it.
    #[error(
        "{}: function `{function}` declares the state `{state}` and never writes it, so it would forget the \
         conversation; the model that was converted must assign to the buffer of that name, in place",
        path.display()
    )]
    StateIgnored {
        /// The package.
        path: PathBuf,
        /// The function.
        function: String,
        /// The state.
        state: String,
    },
    /// No interface that is known here fits the package.
    #[error(
        "{}: the package cannot be chatted with, since its functions fit none of the known interfaces:{}",
        path.display(),
        tried.iter().map(|misfit| format!("\n  {misfit}")).collect::<String>()
    )]
    Signature {
        /// The package.
        path: PathBuf,
        /// Each interface, with what is missing for it.
        tried: Vec<Misfit>,
    },
    /// A function has the ports of a known interface and still does not behave like it.
    #[error("{}: function `{function}`: {problem}", path.display())]
    Interface {
        /// The package.
        path: PathBuf,
        /// The function.
        function: String,
        /// What is found and what was expected.
        problem: String,
    },
    /// A function cannot be planned for this machine.
    #[error("{}: function `{function}` cannot be planned: {source}", path.display())]
    Plan {
        /// The package.
        path: PathBuf,
        /// The function.
        function: String,
        /// Why.
        source: Box<PlanError>,
    },
    /// Core ML cannot run the package.
    #[error("{}: {source}", path.display())]
    CoreMl {
        /// The package.
        path: PathBuf,
        /// Why.
        source: Box<anemone_coreml::CoreMlError>,
    },
    /// Core ML is asked for on a machine that has none.
    #[error(
        "the backend `coreml` needs an Apple system; this machine has no Core ML. Without it the package runs on the CPU in \
         Anemone's own runtime: leave the backend to `auto`, or ask for `cpu`"
    )]
    NoCoreMl,
    /// A placement is required and would not be had.
    #[error("{units} is required, and {found}; `anemone placement` shows where operations run")]
    Placement {
        /// The units that were asked for.
        units: anemone_coreml::ComputeUnits,
        /// What there is instead.
        found: String,
    },
    /// There is no tokenizer, so the model can compute and not speak.
    #[error(
        "there is no `tokenizer.json` in {}: without the model's own tokenizer it can be used with `predict` and not be \
         chatted with; put the file there",
        folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(" or ")
    )]
    NoTokenizer {
        /// Where it was looked for.
        folders: Vec<PathBuf>,
    },
    /// A snapshot could not be made, or can't be used. Nothing was changed.
    #[error("{}: {source}", path.display())]
    Snapshot {
        /// The file.
        path: PathBuf,
        /// What failed or does not match.
        source: Box<SnapshotError>,
    },
    /// A conversation can't be kept, or a kept one not be opened.
    #[error("{}: {source}", path.display())]
    Kept {
        /// Its folder or log.
        path: PathBuf,
        /// Why.
        source: Box<KeepError>,
    },
    /// A file of settings does not say what it should.
    #[error("{}: {problem}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

impl Error {
    pub(crate) fn snapshot(path: &Path, source: SnapshotError) -> Self {
        Self::Snapshot { path: path.to_owned(), source: Box::new(source) }
    }

    pub(crate) fn kept(path: &Path, source: KeepError) -> Self {
        Self::Kept { path: path.to_owned(), source: Box::new(source) }
    }

    pub(crate) fn bundle(source: BundleError) -> Self {
        Self::Bundle(Box::new(source))
    }
}

/// Errors of packages name their file already.
fn program(path: &Path, source: &MilError) -> String {
    match source {
        MilError::Package(_) => source.to_string(),
        _ => format!("{}: {source}", path.display()),
    }
}
