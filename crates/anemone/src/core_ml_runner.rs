//! A package as a runner over Core ML, or several that are the parts of one model.

mod call;
mod open;

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use anemone_coreml::{Configuration, Framework, Model, State};
use half::f16;

use crate::package_runner::{check_feed, columns};
use crate::step::{ReadyStep, in_steps};
use crate::{CacheLayout, CacheTensor, Runner, RunnerError, RunnerInfo};
use call::LoadedCall;
pub use open::CoreMlOptions;

/// A package that Core ML runs, or something that behaves like it (see [`Framework`]).
///
/// Its functions are loaded once, over one state. Calls of one function wait for each other, on whatever threads they are
/// made; conversations share the runner and have a state each.
#[derive(Debug)]
pub struct CoreMlRunner<F: Framework> {
    framework: Arc<F>,
    parts: Vec<Part<F>>,
    /// By width, that of one token first.
    steps: Vec<ReadyStep<LoadedCall>>,
    cache: Option<CacheLayout>,
    /// For each tensor of the cache its part, and its name there.
    places: Vec<(usize, String)>,
    context: usize,
    vocabulary: usize,
    info: RunnerInfo,
}

/// One package.
#[derive(Debug)]
struct Part<F: Framework> {
    /// The compiled package, and how it was loaded.
    place: (PathBuf, Configuration),
    model: Model<F>,
    /// The caches that are no states.
    caches: Vec<CacheTensor>,
}

/// What Core ML has read: the states of one conversation, and room for the numbers of a call.
pub struct CoreMlState<F: Framework> {
    parts: Vec<Kept<F>>,
    room: call::Room,
}

/// What one part keeps between calls.
struct Kept<F: Framework> {
    /// Of a part that has states.
    state: Option<State<F>>,
    /// Caches that are no states: they are kept here, given to each call, and new columns written into them.
    caches: Vec<(CacheTensor, Vec<f16>)>,
}

impl<F: Framework> Kept<F> {
    fn foreign(name: &str) -> RunnerError {
        format!("the state has no tensor `{name}`; it belongs to another package").into()
    }

    fn state(&self, name: &str) -> Result<&State<F>, RunnerError> {
        self.state.as_ref().ok_or_else(|| Self::foreign(name))
    }
}

impl<F: Framework> fmt::Debug for CoreMlState<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let states = self.parts.iter().filter_map(|part| part.state.as_ref());
        f.debug_struct("CoreMlState")
            .field("ports", &states.flat_map(State::ports).collect::<Vec<_>>())
            .finish_non_exhaustive()
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

    /// A tensor of the cache, its part, and its name there.
    fn tensor(&self, index: usize) -> Result<(&CacheTensor, usize, &str), RunnerError> {
        let tensor = self.cache.as_ref().and_then(|cache| cache.tensors.get(index));
        let place = self.places.get(index);
        let found = tensor.zip(place).map(|(tensor, (part, name))| (tensor, *part, name.as_str()));
        found.ok_or_else(|| "there is no such tensor".into())
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
        self.steps.last().map_or(1, ReadyStep::width)
    }

    fn new_state(&self) -> Result<CoreMlState<F>, RunnerError> {
        let room = call::Room::for_width(self.chunk());
        let parts = self.parts.iter().map(|part| {
            let state = match part.model.states() {
                [] => None,
                _ => Some(part.model.new_state()?),
            };
            let zeros = |tensor: &CacheTensor| vec![f16::ZERO; tensor.shape.iter().product()];
            let caches = part.caches.iter().map(|tensor| (tensor.clone(), zeros(tensor))).collect();
            Ok::<_, RunnerError>(Kept { state, caches })
        });
        Ok(CoreMlState { parts: parts.collect::<Result<_, _>>()?, room })
    }

    fn feed(
        &self,
        state: &mut CoreMlState<F>,
        position: usize,
        tokens: &[u32],
        logits: &mut [f32],
    ) -> Result<(), RunnerError> {
        check_feed((self.context, self.vocabulary), position, tokens, logits)?;
        if state.parts.len() != self.parts.len() {
            return Err("the state belongs to a model of other parts; make a new one".into());
        }
        in_steps(&self.steps, self.context, position, tokens, |step, position, tokens, last| {
            let mut wanted = last.then_some(&mut *logits);
            for ((call, part), kept) in step.calls_for(last).zip(&self.parts).zip(&mut state.parts) {
                let function = &part.model.functions()[call.function];
                call.run(function, kept, &mut state.room, (position, tokens), wanted.as_deref_mut())?;
            }
            Ok(())
        })
    }

    fn copy_state(&self, state: &CoreMlState<F>, position: usize) -> Result<Option<CoreMlState<F>>, RunnerError> {
        let mut copy = self.new_state()?;
        for (to, from) in copy.parts.iter_mut().zip(&state.parts) {
            if let (Some(to), Some(from)) = (&mut to.state, &from.state) {
                to.copy_columns(from, position)?;
            }
            for ((tensor, to), (_, from)) in to.caches.iter_mut().zip(&from.caches) {
                columns::copy(tensor, from, to, position);
            }
        }
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
        let (tensor, part, name) = self.tensor(tensor)?;
        let kept = state.parts.get(part).ok_or_else(|| Kept::<F>::foreign(name))?;
        if let Some((_, cache)) = kept.caches.iter().find(|(cache, _)| cache.name == name) {
            columns::read(tensor, cache, rows, columns, to);
            return Ok(());
        }
        let mut halves = vec![f16::ZERO; to.len() / 2];
        kept.state(name)?.read_columns(name, rows, 0..columns, &mut halves)?;
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
        let (tensor, part, name) = self.tensor(tensor)?;
        let kept = state.parts.get_mut(part).ok_or_else(|| Kept::<F>::foreign(name))?;
        if let Some((_, cache)) = kept.caches.iter_mut().find(|(cache, _)| cache.name == name) {
            columns::write(tensor, cache, rows, columns, from);
            return Ok(());
        }
        let halves: Vec<f16> = from.chunks_exact(2).map(|bytes| f16::from_le_bytes([bytes[0], bytes[1]])).collect();
        let state = kept.state.as_mut().ok_or_else(|| Kept::<F>::foreign(name))?;
        state.write_columns(name, rows, 0..columns, &halves)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
