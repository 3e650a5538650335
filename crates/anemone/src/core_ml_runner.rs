//! A package as a runner over Core ML.

mod call;
mod open;

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use anemone_coreml::{Configuration, Framework, Model, State};
use half::f16;

use crate::package_runner::check_feed;
use crate::{CacheLayout, Runner, RunnerError, RunnerInfo};
use call::LoadedCall;
pub use open::CoreMlOptions;

/// A package that Core ML runs, or something that behaves like it (see [`Framework`]).
///
/// Its functions are loaded once, over one state. Calls of one function wait for each other, on whatever threads they are
/// made; conversations share the runner and have a state each.
#[derive(Debug)]
pub struct CoreMlRunner<F: Framework> {
    framework: Arc<F>,
    /// The compiled package, and how it was loaded.
    place: (PathBuf, Configuration),
    model: Model<F>,
    /// By width, that of one token first.
    calls: Vec<LoadedCall>,
    cache: Option<CacheLayout>,
    context: usize,
    vocabulary: usize,
    info: RunnerInfo,
}

/// What Core ML has read: the state of one conversation, and room for the numbers of a call.
pub struct CoreMlState<F: Framework> {
    state: State<F>,
    room: call::Room,
}

impl<F: Framework> fmt::Debug for CoreMlState<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoreMlState").field("ports", &self.state.ports()).finish_non_exhaustive()
    }
}

impl<F: Framework> CoreMlRunner<F> {
    /// What the package is and what it costs.
    pub fn info(&self) -> &RunnerInfo {
        &self.info
    }

    /// Adds what else is to be told.
    #[cfg_attr(not(target_vendor = "apple"), allow(dead_code, reason = "a model opens it on Apple systems only"))]
    pub(crate) fn add_notes(&mut self, notes: Vec<String>) {
        self.info.notes.extend(notes);
    }

    /// The call for the next of `remaining` tokens: the widest one that is worth it and fits.
    fn next_call(&self, position: usize, remaining: usize) -> &LoadedCall {
        let fits = |call: &&LoadedCall| remaining >= call.least() && position + call.width() <= self.context;
        self.calls.iter().rev().find(fits).unwrap_or(&self.calls[0])
    }

    fn tensor(&self, index: usize) -> Result<&crate::CacheTensor, RunnerError> {
        self.cache.as_ref().and_then(|cache| cache.tensors.get(index)).ok_or_else(|| "there is no such tensor".into())
    }
}

impl<F: Framework> Runner for CoreMlRunner<F> {
    type State = CoreMlState<F>;

    fn context(&self) -> usize {
        self.context
    }

    fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    fn chunk(&self) -> usize {
        self.calls.last().map_or(1, LoadedCall::width)
    }

    fn new_state(&self) -> Result<CoreMlState<F>, RunnerError> {
        let room = call::Room::for_width(self.chunk());
        Ok(CoreMlState { state: self.model.new_state()?, room })
    }

    fn feed(
        &self,
        state: &mut CoreMlState<F>,
        position: usize,
        tokens: &[u32],
        logits: &mut [f32],
    ) -> Result<(), RunnerError> {
        check_feed((self.context, self.vocabulary), position, tokens, logits)?;
        let (mut position, mut rest) = (position, tokens);
        while !rest.is_empty() {
            let call = self.next_call(position, rest.len());
            let (now, later) = rest.split_at(rest.len().min(call.width()));
            let wanted = later.is_empty().then_some(&mut *logits);
            let function = &self.model.functions()[call.function];
            call.run(function, &mut state.state, &mut state.room, position, now, wanted)?;
            position += now.len();
            rest = later;
        }
        Ok(())
    }

    fn copy_state(&self, state: &CoreMlState<F>, position: usize) -> Result<Option<CoreMlState<F>>, RunnerError> {
        let mut copy = self.new_state()?;
        copy.state.copy_columns(&state.state, position)?;
        Ok(Some(copy))
    }

    fn cache_layout(&self) -> Option<&CacheLayout> {
        self.cache.as_ref()
    }

    fn read_columns(
        &self,
        state: &CoreMlState<F>,
        tensor: usize,
        rows: Range<usize>,
        columns: usize,
        to: &mut [u8],
    ) -> Result<(), RunnerError> {
        let mut halves = vec![f16::ZERO; to.len() / 2];
        state.state.read_columns(&self.tensor(tensor)?.name, rows, 0..columns, &mut halves)?;
        to.chunks_exact_mut(2).zip(halves).for_each(|(to, half)| to.copy_from_slice(&half.to_le_bytes()));
        Ok(())
    }

    fn write_columns(
        &self,
        state: &mut CoreMlState<F>,
        tensor: usize,
        rows: Range<usize>,
        columns: usize,
        from: &[u8],
    ) -> Result<(), RunnerError> {
        let halves: Vec<f16> = from.chunks_exact(2).map(|bytes| f16::from_le_bytes([bytes[0], bytes[1]])).collect();
        state.state.write_columns(&self.tensor(tensor)?.name, rows, 0..columns, &halves)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
