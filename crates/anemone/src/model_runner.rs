//! The runner that a package is opened with: Core ML where there is one, our own runtime everywhere.

mod backend;

use std::ops::Range;
use std::path::Path;

#[cfg(target_vendor = "apple")]
use anemone_coreml::Apple;

#[cfg(target_vendor = "apple")]
use crate::CoreMlRunner;
use crate::location::Location;
use crate::{CacheLayout, ModelOptions, PackageRunner, PackageState, Result, Runner, RunnerError, RunnerInfo};
pub use backend::{Backend, BackendOptions};

/// A package, opened with the backend that its options ask for.
#[derive(Debug)]
#[non_exhaustive]
pub enum ModelRunner {
    /// On this machine's processor, in our own runtime.
    Cpu(Box<PackageRunner>),
    /// In Core ML.
    #[cfg(target_vendor = "apple")]
    CoreMl(Box<CoreMlRunner<Apple>>),
}

/// What a [`ModelRunner`] has read.
#[derive(Debug)]
#[non_exhaustive]
pub enum ModelState {
    /// In our own runtime.
    Cpu(PackageState),
    /// In Core ML.
    #[cfg(target_vendor = "apple")]
    CoreMl(crate::CoreMlState<Apple>),
}

impl ModelRunner {
    /// Opens a converted folder or a package. A tokenizer is not needed.
    ///
    /// # Errors
    /// As [`PackageRunner::open`]; [`Error::NoCoreMl`](crate::Error::NoCoreMl) where Core ML is asked for and absent,
    /// [`Error::Placement`](crate::Error::Placement) where the Neural Engine is required and would not be used,
    /// [`Error::CoreMl`](crate::Error::CoreMl) for what Core ML refuses.
    pub fn open(path: &Path, options: &ModelOptions) -> Result<Self> {
        Self::open_at(&Location::find(path)?, options)
    }

    pub(crate) fn open_at(location: &Location, options: &ModelOptions) -> Result<Self> {
        match backend::choose(&options.backend, cfg!(target_vendor = "apple"))? {
            backend::Chosen::Cpu => PackageRunner::open_at(location, options).map(|runner| Self::Cpu(Box::new(runner))),
            #[cfg(target_vendor = "apple")]
            backend::Chosen::CoreMl(units) => {
                backend::open_core_ml(location, &options.backend, units).map(|runner| Self::CoreMl(Box::new(runner)))
            }
            #[cfg(not(target_vendor = "apple"))]
            backend::Chosen::CoreMl(_) => unreachable!("it is not chosen where it is absent"),
        }
    }

    /// What the package is and what it costs.
    pub fn info(&self) -> &RunnerInfo {
        match self {
            Self::Cpu(runner) => runner.info(),
            #[cfg(target_vendor = "apple")]
            Self::CoreMl(runner) => runner.info(),
        }
    }

    /// As [`PackageRunner::overflows`]; nothing with Core ML.
    pub fn overflows(&self) -> Vec<String> {
        match self {
            Self::Cpu(runner) => runner.overflows(),
            #[cfg(target_vendor = "apple")]
            Self::CoreMl(_) => Vec::new(),
        }
    }

    /// Adds what else is to be told.
    pub(crate) fn add_notes(&mut self, notes: Vec<String>) {
        match self {
            Self::Cpu(runner) => runner.add_notes(notes),
            #[cfg(target_vendor = "apple")]
            Self::CoreMl(runner) => runner.add_notes(notes),
        }
    }
}

/// Calls the runner inside, with the state inside if one is given.
macro_rules! inside {
    ($self:ident, $runner:ident => $call:expr) => {
        match $self {
            ModelRunner::Cpu($runner) => $call,
            #[cfg(target_vendor = "apple")]
            ModelRunner::CoreMl($runner) => $call,
        }
    };
    ($self:ident, $state:ident, $runner:ident => $call:expr) => {
        match ($self, $state) {
            (ModelRunner::Cpu($runner), ModelState::Cpu($state)) => $call,
            #[cfg(target_vendor = "apple")]
            (ModelRunner::CoreMl($runner), ModelState::CoreMl($state)) => $call,
            #[cfg(target_vendor = "apple")]
            _ => Err("the state belongs to another backend; make a new one".into()),
        }
    };
}

impl Runner for ModelRunner {
    type State = ModelState;

    fn context(&self) -> usize {
        inside!(self, runner => runner.context())
    }

    fn vocabulary(&self) -> usize {
        inside!(self, runner => runner.vocabulary())
    }

    fn chunk(&self) -> usize {
        inside!(self, runner => runner.chunk())
    }

    fn new_state(&self) -> Result<ModelState, RunnerError> {
        match self {
            Self::Cpu(runner) => runner.new_state().map(ModelState::Cpu),
            #[cfg(target_vendor = "apple")]
            Self::CoreMl(runner) => runner.new_state().map(ModelState::CoreMl),
        }
    }

    fn feed(
        &self,
        state: &mut ModelState,
        position: usize,
        tokens: &[u32],
        logits: &mut [f32],
    ) -> Result<(), RunnerError> {
        inside!(self, state, runner => runner.feed(state, position, tokens, logits))
    }

    fn each(&self) -> usize {
        inside!(self, runner => runner.each())
    }

    fn guesses_always(&self) -> bool {
        inside!(self, runner => runner.guesses_always())
    }

    fn feed_each(
        &self,
        state: &mut ModelState,
        position: usize,
        tokens: &[u32],
        logits: &mut [f32],
    ) -> Result<(), RunnerError> {
        inside!(self, state, runner => runner.feed_each(state, position, tokens, logits))
    }

    fn copy_state(&self, state: &ModelState, position: usize) -> Result<Option<ModelState>, RunnerError> {
        match (self, state) {
            (Self::Cpu(runner), ModelState::Cpu(state)) => Ok(runner.copy_state(state, position)?.map(ModelState::Cpu)),
            #[cfg(target_vendor = "apple")]
            (Self::CoreMl(runner), ModelState::CoreMl(state)) => {
                Ok(runner.copy_state(state, position)?.map(ModelState::CoreMl))
            }
            #[cfg(target_vendor = "apple")]
            _ => Ok(None),
        }
    }

    fn cache_layout(&self) -> Option<&CacheLayout> {
        inside!(self, runner => runner.cache_layout())
    }

    fn read_columns(
        &self,
        state: &ModelState,
        tensor: usize,
        rows: Range<usize>,
        columns: usize,
        to: &mut [u8],
    ) -> Result<(), RunnerError> {
        inside!(self, state, runner => runner.read_columns(state, tensor, rows, columns, to))
    }

    fn write_columns(
        &self,
        state: &mut ModelState,
        tensor: usize,
        rows: Range<usize>,
        columns: usize,
        from: &[u8],
    ) -> Result<(), RunnerError> {
        inside!(self, state, runner => runner.write_columns(state, tensor, rows, columns, from))
    }
}
