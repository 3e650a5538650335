//! The seam between a conversation and the tensors below it.

use std::ops::Range;

use crate::{CacheLayout, CacheTensor};

/// The error of a runtime; the session adds the place.
pub type RunnerError = Box<dyn std::error::Error + Send + Sync>;

/// A language model that keeps what it has read in a state.
///
/// The model itself is shared and never changes; all that changes is in `State`, which every call takes exclusively. A
/// state need not be `Sync`. Calls on two states may run at the same time,
///
/// ```
/// # use anemone::Runner;
/// fn at_once<R: Runner>(runner: &R, states: &mut [R::State; 2], logits: &mut [Vec<f32>; 2]) {
///     let ([one, other], [first, second]) = (states, logits);
///     std::thread::scope(|scope| {
///         scope.spawn(|| runner.feed(one, 0, &[1], first));
///         scope.spawn(|| runner.feed(other, 0, &[1], second));
///     });
/// }
/// ```
///
/// and two calls on one state don't compile:
///
/// ```compile_fail,E0499
/// # use anemone::Runner;
/// fn at_once<R: Runner>(runner: &R, one: &mut R::State, logits: &mut [Vec<f32>; 2]) {
///     let [first, second] = logits;
///     std::thread::scope(|scope| {
///         scope.spawn(|| runner.feed(one, 0, &[1], first));
///         scope.spawn(|| runner.feed(one, 0, &[1], second));
///     });
/// }
/// ```
///
/// Nor does a state of a package let itself be shared:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: &T) {}
/// fn look(state: &anemone::PackageState) {
///     shared(state);
/// }
/// ```
///
/// [`Session`](crate::Session) calls [`feed`](Runner::feed) only with `position + tokens ≤ context`, and never with a
/// position beyond what the state has read. It may go *back*: columns of the state from `position` on are then stale and
/// are written anew.
pub trait Runner: Send + Sync {
    /// What the model has read: its key-value cache.
    type State: Send;

    /// How many tokens a state holds.
    fn context(&self) -> usize;

    /// How many logits there are, one for each token id from 0 on.
    fn vocabulary(&self) -> usize;

    /// How many tokens are best fed in one call. Longer prompts come in calls of this length, between which they can be
    /// cancelled.
    fn chunk(&self) -> usize {
        64
    }

    /// A state that has read nothing.
    ///
    /// # Errors
    /// The runtime's own, for example when memory does not suffice.
    fn new_state(&self) -> Result<Self::State, RunnerError>;

    /// Reads `tokens` (at least one) as those from `position` on, and writes the logits that follow the last of them
    /// (`vocabulary` many).
    ///
    /// # Errors
    /// The runtime's own. Columns of the state before `position` must then still be as they were.
    fn feed(
        &self,
        state: &mut Self::State,
        position: usize,
        tokens: &[u32],
        logits: &mut [f32],
    ) -> Result<(), RunnerError>;

    /// How many tokens [`feed_each`](Runner::feed_each) takes; 1 if logits come for a call's last token alone. A session
    /// reads guesses along with a token where it can.
    fn each(&self) -> usize {
        1
    }

    /// Whether guesses are read along wherever there are any, not only while that measures faster.
    fn guesses_always(&self) -> bool {
        false
    }

    /// As [`feed`](Runner::feed) of at most [`each`](Runner::each) tokens, with the logits that follow each of them, one
    /// after the other (`vocabulary` for each token). They are the bits that `feed` gives, token by token.
    ///
    /// # Errors
    /// As [`feed`](Runner::feed).
    fn feed_each(
        &self,
        state: &mut Self::State,
        position: usize,
        tokens: &[u32],
        logits: &mut [f32],
    ) -> Result<(), RunnerError> {
        self.feed(state, position, tokens, logits)
    }

    /// A second state that has read the first `position` tokens that `state` has read; none if the runtime can't copy,
    /// in which case the session reads them anew.
    ///
    /// # Errors
    /// The runtime's own.
    fn copy_state(&self, state: &Self::State, position: usize) -> Result<Option<Self::State>, RunnerError> {
        let _ = (state, position);
        Ok(None)
    }

    /// Bytes of a state, as if all of its columns were in use. By default what the layout says, or 0.
    fn state_bytes(&self) -> u64 {
        let bytes = |tensor: &CacheTensor| tensor.shape.iter().product::<usize>() * tensor.element_bytes;
        self.cache_layout().map_or(0, |layout| layout.tensors.iter().map(bytes).sum::<usize>() as u64)
    }

    /// How the cache lies in the states, if they can be read and written; then it can be kept in snapshots.
    fn cache_layout(&self) -> Option<&CacheLayout> {
        None
    }

    /// Copies the first `columns` columns of `rows` of the layout's tensor `tensor` to `to`: row by row, without gaps,
    /// as little-endian bytes. `to` has just that length.
    ///
    /// # Errors
    /// The runtime's own; by default that it has no layout.
    fn read_columns(
        &self,
        state: &Self::State,
        tensor: usize,
        rows: Range<usize>,
        columns: usize,
        to: &mut [u8],
    ) -> Result<(), RunnerError> {
        let _ = (state, tensor, rows, columns, to);
        Err("this runtime cannot read its states".into())
    }

    /// Puts columns in place, as [`read_columns`](Runner::read_columns) gave them.
    ///
    /// # Errors
    /// The runtime's own; by default that it has no layout.
    fn write_columns(
        &self,
        state: &mut Self::State,
        tensor: usize,
        rows: Range<usize>,
        columns: usize,
        from: &[u8],
    ) -> Result<(), RunnerError> {
        let _ = (state, tensor, rows, columns, from);
        Err("this runtime cannot write its states".into())
    }
}
