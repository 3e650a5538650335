//! What can go wrong here, said once.

use std::path::PathBuf;

use crate::{ComputeUnits, ElementType, Failure};

/// The result of every fallible call of this crate.
pub type Result<T, E = CoreMlError> = std::result::Result<T, E>;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CoreMlError {
    /// Core ML refused or failed.
    #[error("{operation}: {failure}")]
    Failed {
        /// What was asked of it, with the path or function.
        operation: String,
        /// What it said.
        failure: Failure,
    },
    /// The system is too old.
    #[error("{feature} needs {expected}; this is {found}")]
    System {
        /// What was asked for.
        feature: &'static str,
        /// The systems that have it.
        expected: &'static str,
        /// This system.
        found: String,
    },
    /// The cache of compiled packages could not be read or written.
    #[error("{}: {doing}: {source}", path.display())]
    Cache {
        /// The file or folder.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// A function has not the ports that were expected.
    #[error("function `{function}`, {what} `{port}`: expected {expected}, found {found}")]
    Port {
        /// The function.
        function: String,
        /// Whether it is an input, an output or a state.
        what: &'static str,
        /// Its name.
        port: String,
        /// What was expected.
        expected: String,
        /// What Core ML has.
        found: String,
    },
    /// An array of Core ML has a form that cannot be read.
    #[error("array of {element} {shape:?} with strides {strides:?} in {bytes} bytes: {problem}")]
    Array {
        /// Its element type.
        element: ElementType,
        /// Its shape.
        shape: Vec<usize>,
        /// Its strides, in elements.
        strides: Vec<usize>,
        /// Bytes of its memory.
        bytes: usize,
        /// What is wrong.
        problem: &'static str,
    },
    /// A state of another package.
    #[error("the state belongs to another package (digest {found}, expected {expected}); make a new one")]
    Foreign {
        /// Digest of the package that is asked to run.
        expected: String,
        /// Digest of the package that made the state.
        found: String,
    },
    /// Core ML failed while it wrote to this state, so nothing is known of its content.
    #[error("an earlier prediction on this state failed, so its content is unknown; make a new one")]
    Spoiled,
    /// The units that were asked for are not on this machine.
    #[error("{units} were asked for, and this machine has no {missing}")]
    NoSuchUnit {
        /// What was asked for.
        units: ComputeUnits,
        /// What it has not.
        missing: &'static str,
    },
}

impl CoreMlError {
    /// What Core ML itself said, if it was Core ML that failed.
    #[must_use]
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            CoreMlError::Failed { failure, .. } => Some(failure),
            _ => None,
        }
    }
}
