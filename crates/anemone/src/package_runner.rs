//! A package as a runner: plans for each width over one set of weights, and states that they write in place.

mod call;
mod columns;
mod info;
mod open;
mod packed_file;

use std::ops::Range;
use std::sync::Arc;

use anemone_cpu::{RunError, State, StateLayout};

pub use info::{CallInfo, RunnerInfo, StateInfo};
pub use open::ModelOptions;

pub(crate) use call::fill;
pub(crate) use open::{claimed, program};

use crate::{CacheLayout, CacheTensor, Runner, RunnerError};
use call::PlannedCall;

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
    calls: Vec<PlannedCall>,
    layout: Arc<StateLayout>,
    cache: CacheLayout,
    context: usize,
    vocabulary: usize,
    info: RunnerInfo,
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
    #[error("function `{function}`: {source}")]
    Run { function: String, source: RunError },
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
    /// What the package is and what it costs.
    pub fn info(&self) -> &RunnerInfo {
        &self.info
    }

    /// Adds what else is to be told.
    pub(crate) fn add_notes(&mut self, notes: Vec<String>) {
        self.info.notes.extend(notes);
    }

    /// The call for the next of `remaining` tokens: the widest one that is worth it and fits.
    fn next_call(&self, position: usize, remaining: usize) -> &PlannedCall {
        let fits = |call: &&PlannedCall| remaining >= call.least() && position + call.width() <= self.context;
        self.calls.iter().rev().find(fits).unwrap_or(&self.calls[0])
    }
}

impl Runner for PackageRunner {
    type State = State;

    fn context(&self) -> usize {
        self.context
    }

    fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    fn chunk(&self) -> usize {
        self.calls.last().map_or(1, PlannedCall::width)
    }

    fn new_state(&self) -> Result<State, RunnerError> {
        Ok(State::new(Arc::clone(&self.layout)))
    }

    fn feed(&self, state: &mut State, position: usize, tokens: &[u32], logits: &mut [f32]) -> Result<(), RunnerError> {
        check_feed((self.context, self.vocabulary), position, tokens, logits)?;
        let (mut position, mut rest) = (position, tokens);
        while !rest.is_empty() {
            let call = self.next_call(position, rest.len());
            let (now, later) = rest.split_at(rest.len().min(call.width()));
            let wanted = later.is_empty().then_some(&mut *logits);
            call.run(state, position, now, wanted)
                .map_err(|source| FeedError::Run { function: call.function().to_owned(), source })?;
            position += now.len();
            rest = later;
        }
        Ok(())
    }

    /// Copies the columns that the first `position` tokens have written, and no others.
    fn copy_state(&self, state: &State, position: usize) -> Result<Option<State>, RunnerError> {
        let mut copy = State::new(Arc::clone(state.layout()));
        for tensor in &self.cache.tensors {
            let (Some(from), Some(to)) = (state.get(&tensor.name), copy.get_mut(&tensor.name)) else { continue };
            columns::copy(tensor, from, to, position);
        }
        Ok(Some(copy))
    }

    fn cache_layout(&self) -> Option<&CacheLayout> {
        Some(&self.cache)
    }

    fn read_columns(
        &self,
        state: &State,
        tensor: usize,
        rows: Range<usize>,
        columns: usize,
        to: &mut [u8],
    ) -> Result<(), RunnerError> {
        let tensor = &self.cache.tensors[tensor];
        let from = state.get(&tensor.name).ok_or_else(|| foreign(tensor))?;
        columns::read(tensor, from, rows, columns, to);
        Ok(())
    }

    fn write_columns(
        &self,
        state: &mut State,
        tensor: usize,
        rows: Range<usize>,
        columns: usize,
        from: &[u8],
    ) -> Result<(), RunnerError> {
        let tensor = &self.cache.tensors[tensor];
        let to = state.get_mut(&tensor.name).ok_or_else(|| foreign(tensor))?;
        columns::write(tensor, to, rows, columns, from);
        Ok(())
    }
}

fn foreign(tensor: &CacheTensor) -> RunnerError {
    format!("the state has no tensor `{}`; it belongs to another package", tensor.name).into()
}
