//! What can go wrong with a package.

use std::io;
use std::path::{Path, PathBuf};

use crate::blob::BlobError;
use crate::manifest::ManifestError;
use crate::proto::ModelError;

/// Why a package cannot be read or written. Every variant names the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackageError {
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, such as `read`.
        action: &'static str,
        /// With which file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The path holds something else.
    #[error("{}: {found}, expected a `.mlpackage` folder or a `.mlmodel` file; {remedy}", path.display())]
    NotAPackage {
        /// What was opened.
        path: PathBuf,
        /// What it is.
        found: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The manifest is unusable.
    #[error("{}: {source}", path.display())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// What is wrong with it.
        source: ManifestError,
    },
    /// A file is larger than what is read.
    #[error("{}: {found} bytes, more than the {limit} that are read", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        found: u64,
        /// The bound.
        limit: u64,
    },
    /// The model is unusable.
    #[error("{}: {source}", path.display())]
    Model {
        /// The model file.
        path: PathBuf,
        /// What is wrong with it.
        source: ModelError,
    },
    /// Something refers to a file outside its package.
    #[error("{}: refers to `{found}`, which is not inside {}; {remedy}", path.display(), root.display())]
    Outside {
        /// The file that refers.
        path: PathBuf,
        /// What it refers to.
        found: String,
        /// The folder that it may refer to.
        root: PathBuf,
        /// What to do.
        remedy: &'static str,
    },
    /// A blob of a weight file is unusable.
    #[error("{}: blob at byte {offset}: {source}", path.display())]
    Blob {
        /// The weight file.
        path: PathBuf,
        /// The offset by which the model refers to the blob.
        offset: u64,
        /// What is wrong with it.
        source: BlobError,
    },
    /// A package to be rewritten holds what Anemone does not know and could not write back.
    #[error("{}: holds {found}, which a rewritten package would lose; {remedy}", path.display())]
    CannotCarry {
        /// The package or the file in it.
        path: PathBuf,
        /// What would be lost.
        found: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The place to write at is taken by something that may not be replaced.
    #[error("{}: expected nothing, an empty folder or a package, found {found}; choose another path, or move that away", path.display())]
    Occupied {
        /// The place.
        path: PathBuf,
        /// What is there.
        found: String,
    },
    /// What should be written is not a valid package.
    #[error("cannot write {}: {reason}", path.display())]
    Invalid {
        /// The package to be written.
        path: PathBuf,
        /// What is wrong with the request.
        reason: String,
    },
}

impl PackageError {
    /// For `map_err`: an I/O error with its action and path.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}
