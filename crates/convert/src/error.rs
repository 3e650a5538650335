//! The one error type of the crate.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Shorthand for results of this crate.
pub type Result<T, E = ConvertError> = std::result::Result<T, E>;

/// Why a checkpoint could not be read or converted: where, what was found, what was expected, what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// The operating system refused a file operation.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was being done, as in "open".
        action: &'static str,
        /// The operating system's reason.
        source: io::Error,
    },
    /// The path holds nothing that can be converted.
    #[error("{}: {problem}; expected {EXPECTED_SOURCE}", path.display())]
    NotACheckpoint {
        /// The path as given.
        path: PathBuf,
        /// What was found there.
        problem: String,
    },
    /// A GGUF file whose bytes contradict the format.
    #[error("{}: at byte {offset}: {problem}", path.display())]
    Gguf {
        /// The file.
        path: PathBuf,
        /// Where in the file, in bytes.
        offset: u64,
        /// What was found and what was expected.
        problem: String,
    },
    /// A file of a Hugging Face folder that contradicts its format.
    #[error("{}: {problem}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What was found and what was expected.
        problem: String,
    },
    /// A setting that is absent, of another type, or out of range.
    #[error("{}: `{key}`: {problem}", path.display())]
    Setting {
        /// The file.
        path: PathBuf,
        /// The key in `config.json` or in the GGUF metadata.
        key: String,
        /// What was found and what was expected.
        problem: String,
    },
    /// A model of an architecture that the converter does not know.
    #[error("{}: architecture {found:?} is not supported; supported: {supported}", path.display())]
    UnsupportedArchitecture {
        /// The file that names it.
        path: PathBuf,
        /// The architecture as the file names it.
        found: String,
        /// Those that are supported.
        supported: String,
    },
    /// A supported architecture with a setting that the converter does not do.
    #[error("{}: {feature} is not supported; {remedy}", path.display())]
    UnsupportedFeature {
        /// The file that asks for it.
        path: PathBuf,
        /// What it asks for.
        feature: String,
        /// What is supported, or what to do.
        remedy: String,
    },
    /// A tensor of a data type that cannot be decoded.
    #[error("{}: tensor {tensor:?} is of type {found}, which is not supported; supported: {supported}", path.display())]
    UnsupportedType {
        /// The file.
        path: PathBuf,
        /// The tensor as the file names it.
        tensor: String,
        /// Its type as the file names it.
        found: String,
        /// The types that are supported here.
        supported: String,
    },
    /// Tensors that are absent or have another shape than the settings say: all of them at once.
    #[error("{}: {}", path.display(), problems.join("; "))]
    Tensors {
        /// The file or folder.
        path: PathBuf,
        /// One line per tensor.
        problems: Vec<String>,
    },
    /// A tokenizer that is absent, contradictory or of an unknown kind.
    #[error("{}: tokenizer: {problem}", path.display())]
    Tokenizer {
        /// The file.
        path: PathBuf,
        /// What was found and what was expected.
        problem: String,
    },
    /// A weight that half floats cannot hold.
    #[error(
        "tensor {tensor:?} holds {value}; expected numbers from -65504 to 65504: Core ML packages store weights and scales as \
         half floats, which have no others. The file may be damaged: download it again, or take one of another type"
    )]
    Unrepresentable {
        /// The tensor.
        tensor: String,
        /// The weight.
        value: f32,
    },
    /// An option that does not fit the model.
    #[error("{option}: {problem}")]
    Options {
        /// The option.
        option: &'static str,
        /// What was found and what was expected.
        problem: String,
    },
    /// Too little room on the disk.
    #[error("{}: the package needs {}, and {} are free; free some room or choose another folder", path.display(), size(*needed), size(*free))]
    DiskFull {
        /// The folder.
        path: PathBuf,
        /// Bytes that are needed.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// The destination holds something else.
    #[error("{}: expected no folder, an empty one or a converted model alone, found {found}; choose another folder, or move that away", path.display())]
    Occupied {
        /// The destination.
        path: PathBuf,
        /// What is there.
        found: String,
    },
    /// Stopped on request; nothing is left behind.
    #[error("stopped: nothing was written")]
    Stopped,
    /// The package could not be written.
    #[error(transparent)]
    Write(#[from] anemone_mil::error::MilError),
    /// The package could not be opened or finished.
    #[error(transparent)]
    Package(#[from] anemone_package::PackageError),
    /// A fault of the converter, not of the checkpoint.
    #[error("a fault of the converter: {problem}; please report it")]
    Internal {
        /// What went wrong.
        problem: String,
    },
}

/// Bytes for people.
fn size(bytes: u64) -> String {
    match bytes as f64 / 1e6 {
        mega if mega < 1000.0 => format!("{mega:.1} MB"),
        mega => format!("{:.1} GB", mega / 1000.0),
    }
}

const EXPECTED_SOURCE: &str =
    "a GGUF file, or a Hugging Face folder with config.json and model.safetensors or model.safetensors.index.json";

impl ConvertError {
    pub(crate) fn io(path: &Path, action: &'static str, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), action, source }
    }

    pub(crate) fn malformed(path: &Path, problem: impl fmt::Display) -> Self {
        Self::Malformed { path: path.to_owned(), problem: problem.to_string() }
    }

    pub(crate) fn setting(path: &Path, key: &str, problem: impl fmt::Display) -> Self {
        Self::Setting { path: path.to_owned(), key: key.to_owned(), problem: problem.to_string() }
    }

    pub(crate) fn tokenizer(path: &Path, problem: impl fmt::Display) -> Self {
        Self::Tokenizer { path: path.to_owned(), problem: problem.to_string() }
    }
}
