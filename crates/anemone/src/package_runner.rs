//! A package as a runner, or several that are the parts of one model: plans for each width over one set of weights, and
//! states that they write in place.

mod assemble;
mod at_once;
mod call;
pub(crate) mod columns;
mod host_cache;
mod info;
mod last_row;
mod open;
mod options;
mod packed_file;
mod plans_file;
mod reopen;
mod settling;
mod widths;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anemone_cpu::{RunError, State, StateLayout};
use anemone_package::Package;

pub use info::{CallInfo, RunnerInfo, StateInfo};
pub use options::{ModelOptions, Speculation};

pub(crate) use call::fill;
pub(crate) use open::{claimed, name_in_parts, program, usable};

use crate::step::{ReadyCall, ReadyStep, in_steps};
use crate::{CacheLayout, CacheTensor, Runner, RunnerError, heap};
use call::{Feeding, PlannedCall};
use settling::Settling;

/// A package that is ready to run on this machine's processor.
///
/// Its functions are planned once, for each number of tokens that a call may have: all over one set of packed weights and
/// one pool of threads. What one run needs besides (its temporary tensors) is lent to each call and used again, so a
/// state holds the cache and nothing else, and memory grows with the conversations that run at the same time, not with
/// those that exist.
///
/// ```no_run
/// use anemone::{ModelOptions, PackageRunner, Runner};
///
/// let runner = PackageRunner::open("smollm2".as_ref(), &ModelOptions::default())?;
/// let mut state = runner.new_state()?;
/// let mut logits = vec![0.0; runner.vocabulary()];
/// runner.feed(&mut state, 0, &[1, 2, 3], &mut logits)?;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Debug)]
pub struct PackageRunner {
    /// By width, that of one token first.
    steps: Vec<ReadyStep<PlannedCall>>,
    /// The call of a few tokens that gives the logits of each, so that guesses can be checked.
    checking: Option<PlannedCall>,
    speculation: Speculation,
    /// The states of each part.
    layouts: Vec<Arc<StateLayout>>,
    cache: CacheLayout,
    /// For each tensor of the cache its part, and its name there.
    places: Vec<(usize, String)>,
    context: usize,
    vocabulary: usize,
    /// Of which rows of the vocabulary are read where they are mapped.
    packages: Arc<Vec<Package>>,
    /// Tokens fed since pages of those were given back.
    rows_read: AtomicUsize,
    /// Whether calls of several tokens hold memory that those of one have no use for.
    holding: AtomicBool,
    /// Packed weights that are used where a file of them is mapped, until the first call is over.
    settling: Settling,
    info: RunnerInfo,
}

/// Tokens after which the pages that their rows of the vocabulary lie in are given back. A system maps what is around what is
/// read as well: 64 to 512 KB for a row of one.
const ROWS_KEPT: usize = 8;

/// What a [`PackageRunner`] has read: the state tensors of one conversation.
#[derive(Debug)]
pub struct PackageState {
    /// Of each part.
    parts: Vec<State>,
    /// What one part gives to the next.
    hidden: Vec<f32>,
}

impl PackageState {
    /// The elements of the state tensor `name`, row-major; of the first part that has one of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[half::f16]> {
        self.parts.iter().find_map(|part| part.get(name))
    }

    /// The same, to be written.
    #[must_use]
    pub fn get_mut(&mut self, name: &str) -> Option<&mut [half::f16]> {
        self.parts.iter_mut().find_map(|part| part.get_mut(name))
    }
}

/// Why a call was refused or failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FeedError {
    #[error("no tokens were given")]
    Nothing,
    #[error("positions {position} to {position} + {tokens} lie beyond the context of {context}")]
    Beyond { position: usize, tokens: usize, context: usize },
    #[error("token {token} is not in the vocabulary of {vocabulary}")]
    Token { token: u32, vocabulary: usize },
    #[error("the room for logits is for {found}; expected {vocabulary}")]
    Room { found: usize, vocabulary: usize },
    #[error("{place}: {source}")]
    Run { place: String, source: RunError },
}

/// Refuses what no runner can be fed.
pub(crate) fn check_feed(
    (context, vocabulary): (usize, usize),
    position: usize,
    tokens: &[u32],
    logits: &[f32],
) -> Result<(), FeedError> {
    if tokens.is_empty() {
        return Err(FeedError::Nothing);
    }
    if position.checked_add(tokens.len()).is_none_or(|end| end > context) {
        return Err(FeedError::Beyond { position, tokens: tokens.len(), context });
    }
    if let Some(&token) = tokens.iter().find(|&&token| token as usize >= vocabulary) {
        return Err(FeedError::Token { token, vocabulary });
    }
    if logits.len() != vocabulary {
        return Err(FeedError::Room { found: logits.len(), vocabulary });
    }
    Ok(())
}

impl PackageRunner {
    /// Counts tokens that were fed, and gives pages back now and then.
    fn count_rows(&self, tokens: usize) {
        if self.rows_read.fetch_add(tokens, Ordering::Relaxed) + tokens >= ROWS_KEPT {
            self.rows_read.store(0, Ordering::Relaxed);
            self.packages.iter().for_each(Package::release_memory);
        }
    }

    /// When a prompt is over, gives back what it took: memory of the calls that read it, rows of the vocabulary, code, and
    /// what is free on the heap.
    fn rest_after(&self, tokens: usize) {
        if tokens > 1 {
            self.holding.store(true, Ordering::Relaxed);
        } else if self.holding.load(Ordering::Relaxed) && self.holding.swap(false, Ordering::Relaxed) {
            self.steps.iter().skip(1).flat_map(|step| &step.calls).for_each(PlannedCall::rest);
            self.packages.iter().for_each(Package::release_memory);
            heap::give_back_code_again();
            heap::give_back();
        }
    }

    /// What the package is and what it costs.
    pub fn info(&self) -> &RunnerInfo {
        &self.info
    }

    /// Of a runner that was opened with [`ModelOptions::strict_fp16`]: the operations that made infinities or NaN of finite
    /// operands since the last time, a line each, with the part whose they are of a model in parts.
    pub fn overflows(&self) -> Vec<String> {
        let told = |call: &PlannedCall| {
            let place = call.place();
            call.take_overflows().into_iter().map(move |overflow| format!("{place}: {overflow}"))
        };
        self.steps.iter().flat_map(|step| &step.calls).flat_map(told).collect()
    }

    /// Adds what else is to be told.
    pub(crate) fn add_notes(&mut self, notes: Vec<String>) {
        self.info.notes.extend(notes);
    }
}

impl Runner for PackageRunner {
    type State = PackageState;

    fn context(&self) -> usize {
        self.context
    }

    fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    fn chunk(&self) -> usize {
        self.steps.last().map_or(1, ReadyStep::width)
    }

    fn new_state(&self) -> Result<PackageState, RunnerError> {
        let parts = self.layouts.iter().map(|layout| State::new(Arc::clone(layout))).collect();
        Ok(PackageState { parts, hidden: Vec::new() })
    }

    fn feed(
        &self,
        state: &mut PackageState,
        position: usize,
        tokens: &[u32],
        logits: &mut [f32],
    ) -> Result<(), RunnerError> {
        check_feed((self.context, self.vocabulary), position, tokens, logits)?;
        if state.parts.len() != self.layouts.len() {
            return Err("the state belongs to a model of other parts; make a new one".into());
        }
        in_steps(&self.steps, self.context, position, tokens, |step, position, tokens, last| {
            let (hidden, logits) = (&mut state.hidden, last.then_some(&mut *logits));
            let mut feeding = Feeding { position, tokens, hidden, each: false, logits };
            for (call, state) in step.calls_for(last).zip(&mut state.parts) {
                call.run(state, &mut feeding).map_err(|source| FeedError::Run { place: call.place(), source })?;
            }
            self.count_rows(tokens.len());
            self.rest_after(tokens.len());
            Ok::<_, RunnerError>(())
        })?;
        self.settling.begin();
        Ok(())
    }

    fn each(&self) -> usize {
        self.checking.as_ref().map_or(1, PlannedCall::width)
    }

    fn guesses_always(&self) -> bool {
        matches!(self.speculation, Speculation::Always(_))
    }

    fn feed_each(
        &self,
        state: &mut PackageState,
        position: usize,
        tokens: &[u32],
        logits: &mut [f32],
    ) -> Result<(), RunnerError> {
        let fewest = |call: &&PlannedCall| call.fewest().unwrap_or(call.width());
        let call = self.checking.as_ref().filter(|call| (fewest(call)..=call.width()).contains(&tokens.len()));
        let (Some(call), [part]) = (call, &mut state.parts[..]) else {
            let mut each = logits.chunks_exact_mut(self.vocabulary).zip(tokens).enumerate();
            return each.try_for_each(|(i, (logits, &token))| self.feed(state, position + i, &[token], logits));
        };
        check_feed((self.context, self.vocabulary), position, tokens, &logits[..self.vocabulary])?;
        let hidden = &mut state.hidden;
        call.run(part, &mut Feeding { position, tokens, hidden, each: true, logits: Some(logits) })
            .map_err(|source| FeedError::Run { place: call.place(), source })?;
        self.count_rows(tokens.len());
        Ok(())
    }

    /// Copies the columns that the first `position` tokens have written, and no others.
    fn copy_state(&self, state: &PackageState, position: usize) -> Result<Option<PackageState>, RunnerError> {
        let parts = state.parts.iter().map(|part| State::new(Arc::clone(part.layout()))).collect();
        let mut copy = PackageState { parts, hidden: Vec::new() };
        for (tensor, (part, name)) in self.cache.tensors.iter().zip(&self.places) {
            let (from, to) = (state.parts.get(*part), copy.parts.get_mut(*part));
            let (Some(from), Some(to)) = (from.and_then(|s| s.get(name)), to.and_then(|s| s.get_mut(name))) else {
                return Err(foreign(tensor));
            };
            columns::copy(tensor, from, to, position);
        }
        Ok(Some(copy))
    }

    fn cache_layout(&self) -> Option<&CacheLayout> {
        Some(&self.cache)
    }

    fn read_columns(
        &self,
        state: &PackageState,
        tensor: usize,
        rows: Range<usize>,
        columns: usize,
        to: &mut [u8],
    ) -> Result<(), RunnerError> {
        let (tensor, (part, name)) = (&self.cache.tensors[tensor], &self.places[tensor]);
        let from = state.parts.get(*part).and_then(|state| state.get(name)).ok_or_else(|| foreign(tensor))?;
        columns::read(tensor, from, rows, columns, to);
        Ok(())
    }

    fn write_columns(
        &self,
        state: &mut PackageState,
        tensor: usize,
        rows: Range<usize>,
        columns: usize,
        from: &[u8],
    ) -> Result<(), RunnerError> {
        let (tensor, (part, name)) = (&self.cache.tensors[tensor], &self.places[tensor]);
        let to = state.parts.get_mut(*part).and_then(|state| state.get_mut(name)).ok_or_else(|| foreign(tensor))?;
        columns::write(tensor, to, rows, columns, from);
        Ok(())
    }
}

fn foreign(tensor: &CacheTensor) -> RunnerError {
    format!("the state has no tensor `{}`; it belongs to another package", tensor.name).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_prompt_held_is_given_back_once_and_nothing_is_lost() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../goldens/tiny/model");
        let options = ModelOptions { threads: Some(2), packed: None, ..ModelOptions::default() };
        let [resting, holding] = [0, 1].map(|_| PackageRunner::open(path.as_ref(), &options).unwrap());
        let mut states = [&resting, &holding].map(|runner| runner.new_state().unwrap());
        let mut position = 0;
        for tokens in [&[5, 6, 7, 8, 9][..], &[10], &[11], &[12, 13, 14, 15], &[16]] {
            let logits = [&resting, &holding].map(|runner| {
                let mut logits = vec![0.0; runner.vocabulary()];
                let state = &mut states[usize::from(std::ptr::eq(runner, &holding))];
                runner.feed(state, position, tokens, &mut logits).unwrap();
                logits.into_iter().map(f32::to_bits).collect::<Vec<_>>()
            });
            assert_eq!(logits[0], logits[1]);
            assert_eq!(resting.holding.load(Ordering::Relaxed), tokens.len() > 1);
            // The other never gets to rest.
            holding.holding.store(false, Ordering::Relaxed);
            position += tokens.len();
        }
    }
}
