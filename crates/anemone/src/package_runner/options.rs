//! How a model is opened.

use std::path::PathBuf;
use std::thread;

use crate::BackendOptions;
#[cfg(doc)]
use crate::PackageRunner;

/// How a model is opened.
#[derive(Clone, Debug)]
pub struct ModelOptions {
    /// Threads that share the work, the caller's included; as many as the machine offers if none. Results are the same
    /// bits for any number.
    pub threads: Option<usize>,
    /// Whether the package of a converted folder must have the digest that its manifest states. All of its weights are
    /// read for that (about 0.2 s for 100 MB, while the plans are made), but not again as long as the system says that nobody
    /// has written to its files, if there is a folder for packed weights ([`ModelOptions::packed`]), where that is recorded. A
    /// state remembers the digest, so without the check the manifest is taken at its word. A bare package has no manifest; its
    /// digest is needed in any case.
    pub verify: bool,
    /// Whether all is computed in floats. Else activations are quantized to 16 bits where they meet weights of integers,
    /// which is faster; `docs/numerics.md` says how far that is from exact.
    pub exact: bool,
    /// Whether half floats are rounded as soon as they are computed, as a Neural Engine would; what then overflows is told by
    /// [`PackageRunner::overflows`]. Slow: nothing is fused.
    pub strict_fp16: bool,
    /// A folder to keep packed weights in, about as large as the package's own: a second start reads them instead of packing
    /// them again. Files are known by the package's digest and the processor's instruction set; what is stale or damaged is
    /// made anew, and what was used least recently is removed beyond [`crate::PackedFolder::MOST_BYTES`]. None are kept without a
    /// folder.
    pub packed: Option<PathBuf>,
    /// Whether what comes is guessed from what was said before, and several guesses are checked in one call. Answers are the
    /// same.
    pub speculation: Speculation,
    /// Which runtime, for those who open a [`ModelRunner`](crate::ModelRunner) or a [`Model`](crate::Model).
    pub backend: BackendOptions,
}

/// Whether tokens are guessed, so that several can be checked in one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Speculation {
    /// Where it measures faster.
    #[default]
    Auto,
    /// Never.
    Off,
    /// So many guesses, from 1 to [`Speculation::MOST`], wherever there are any.
    Always(usize),
}

impl Speculation {
    /// More guesses than this are not checked in one call: beyond it, multiplying takes longer than reading the weights.
    pub const MOST: usize = 15;
    /// As many as pay at most with the calls that there are.
    const USUAL: usize = 7;

    /// Tokens of a call that checks guesses.
    pub(super) fn tokens(self) -> Option<usize> {
        match self {
            Self::Off => None,
            Self::Auto => Some(Self::USUAL + 1),
            Self::Always(guesses) => Some(guesses.clamp(1, Self::MOST) + 1),
        }
    }
}

impl Default for ModelOptions {
    /// All threads of the machine, and the digest verified.
    fn default() -> Self {
        let backend = BackendOptions::default();
        let speculation = Speculation::default();
        Self { threads: None, verify: true, exact: false, strict_fp16: false, packed: None, speculation, backend }
    }
}

impl ModelOptions {
    /// The number of threads to use.
    pub(super) fn thread_count(&self) -> usize {
        self.threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, |n| n.get())).clamp(1, MAX_THREADS)
    }
}

/// More threads than this are not started.
const MAX_THREADS: usize = 512;
