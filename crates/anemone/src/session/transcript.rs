//! The transcript and the cache that is derived from it.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::earlier::Earlier;
use super::log::Log;
use super::prompt::Entry;
use super::speculate::{Ahead, Guessed, guess};
use crate::disk::Disk;
use crate::snapshot::{self, PrefixStore, SnapshotInfo};
use crate::{Error, Result, Runner};

/// A kept beginning is taken if it saves computing at least so many tokens.
const WORTH: usize = 16;

/// The tokens that a session has accepted, and a state that has read the first `position` of them.
pub(super) struct Transcript<R: Runner> {
    tokens: Vec<u32>,
    position: usize,
    /// None while the session rests; then `position` is 0.
    state: Option<R::State>,
    /// How many tokens the cache held when it was given up.
    rested_at: usize,
    /// The logits that follow the token at `position - 1`, if the last change was a feed.
    logits: Vec<f32>,
    /// Tokens that were guessed and read already.
    ahead: Ahead,
    /// Where beginnings are kept that need not be computed.
    prefixes: Option<Arc<PrefixStore>>,
    /// Where accepted tokens are told before they are shown.
    log: Option<Log>,
}

/// What a transcript was before a prompt was laid over it.
pub(super) struct Before {
    tokens: Vec<u32>,
    position: usize,
}

impl<R: Runner> Transcript<R> {
    pub(super) fn new(runner: &R) -> Result<Self> {
        let state = runner.new_state().map_err(|source| Error::Model { position: 0, tokens: 0, source })?;
        let logits = vec![0.0; runner.vocabulary()];
        let (tokens, state) = (Vec::new(), Some(state));
        Ok(Self {
            tokens,
            position: 0,
            state,
            rested_at: 0,
            logits,
            ahead: Ahead::default(),
            prefixes: None,
            log: None,
        })
    }

    /// Begins anew, with a new state.
    pub(super) fn reset(&mut self, runner: &R) -> Result<()> {
        let new = Self::new(runner)?;
        *self = Self { prefixes: self.prefixes.clone(), log: self.log.take(), ..new };
        Ok(())
    }

    /// The same transcript with a state of its own.
    pub(super) fn fork(&self, runner: &R) -> Result<Self> {
        let failed = |source| Error::Model { position: self.position, tokens: 0, source };
        let copied = match &self.state {
            Some(state) => runner.copy_state(state, self.position).map_err(failed)?,
            None => None,
        };
        let mut fork = match copied {
            state @ Some(_) => {
                Self { position: self.position, logits: self.logits.clone(), state, ..Self::new(runner)? }
            }
            None => Self::new(runner)?,
        };
        fork.prefixes.clone_from(&self.prefixes);
        fork.tokens.clone_from(&self.tokens);
        Ok(fork)
    }

    pub(super) fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    pub(super) fn position(&self) -> usize {
        self.position
    }

    pub(super) fn logits(&self) -> &[f32] {
        &self.logits
    }

    /// Keeps the cache in a file.
    pub(super) fn snapshot(&self, runner: &R, disk: &dyn Disk, path: &Path) -> Result<SnapshotInfo> {
        let Some(state) = &self.state else {
            let problem = "the session rests in a pool, without a cache".into();
            return Err(Error::Conversation { operation: "snapshot", problem });
        };
        snapshot::write(disk, path, runner, state, self.read())
    }

    /// The tokens whose cache there is, and the state that holds it.
    pub(super) fn read(&self) -> &[u32] {
        &self.tokens[..self.position]
    }

    /// The state that has read them; there must be some.
    pub(super) fn state(&self) -> &R::State {
        self.state.as_ref().expect("what was read was read into a state")
    }

    /// Gives the state up.
    pub(super) fn rest(&mut self) {
        (self.state, self.rested_at, self.position) = (None, self.position, 0);
        self.ahead.settle();
    }

    /// How many tokens the cache held when it was given up.
    pub(super) fn rested_at(&self) -> usize {
        self.rested_at
    }

    /// Puts a state in place that has read the first `position` tokens.
    pub(super) fn adopt(&mut self, state: R::State, position: usize) {
        assert!(position <= self.tokens.len());
        self.state = Some(state);
        self.position = position;
        self.ahead.settle();
    }

    /// Makes `prompt` the transcript. Gives how many of its tokens the cache holds, always fewer than all, so that a
    /// feed follows; and what is needed to go back.
    pub(super) fn lay(&mut self, runner: &R, prompt: Vec<u32>) -> (usize, Before) {
        let reused = common_prefix(&self.tokens, &prompt).min(self.position).min(prompt.len().saturating_sub(1));
        // Behind the common prefix the cache will be overwritten.
        let before = Before { tokens: std::mem::replace(&mut self.tokens, prompt), position: reused };
        self.position = reused;
        self.ahead.settle();
        let unread = self.tokens.len().saturating_sub(1);
        if let Some(prefixes) = self.prefixes.as_ref().filter(|_| unread >= reused + WORTH)
            && let Some((state, columns)) = prefixes.state_for(runner, &self.tokens[..unread], reused + WORTH)
        {
            self.adopt(state, columns);
        }
        (self.position, before)
    }

    pub(super) fn set_prefixes(&mut self, prefixes: Option<Arc<PrefixStore>>) {
        self.prefixes = prefixes;
    }

    /// Goes back to what was before. What a prompt has overwritten in the cache is computed anew when it is needed.
    pub(super) fn restore(&mut self, before: Before) {
        self.tokens = before.tokens;
        self.position = before.position;
        self.ahead.settle();
    }

    /// Makes `tokens` the transcript, of which the cache keeps what it holds.
    pub(super) fn recall(&mut self, tokens: Vec<u32>) {
        self.position = self.position.min(common_prefix(&self.tokens, &tokens));
        self.tokens = tokens;
        self.ahead.settle();
    }

    /// Appends tokens, which are not read yet.
    pub(super) fn append(&mut self, tokens: &[u32]) {
        self.tokens.extend_from_slice(tokens);
        self.ahead.settle();
    }

    /// Appends a token that was generated. It is in the log before anybody sees it.
    pub(super) fn accept(&mut self, token: u32) -> Result<()> {
        if let Some(log) = &mut self.log {
            log.token(token)?;
        }
        self.tokens.push(token);
        Ok(())
    }

    pub(super) fn set_log(&mut self, log: Option<Log>) {
        self.log = log;
    }

    pub(super) fn log(&mut self) -> Option<&mut Log> {
        self.log.as_mut()
    }

    /// Takes over what does not depend on the conversation: the log, and where beginnings are kept.
    pub(super) fn succeed(&mut self, before: &mut Self) {
        self.log = before.log.take();
        self.prefixes.clone_from(&before.prefixes);
    }

    /// Tells the log, if there is one, what the conversation has become.
    pub(super) fn commit(&mut self, what: &str, entries: &[Entry], earlier: &Arc<Earlier>, began: u64) -> Result<()> {
        let Some(log) = &mut self.log else { return Ok(()) };
        log.change(what, entries, earlier, &self.tokens, began, None)?;
        log.sync()
    }

    /// Cuts the transcript to its first `length` tokens.
    pub(super) fn truncate(&mut self, length: usize) {
        self.tokens.truncate(length);
        self.position = self.position.min(length);
        self.ahead.settle();
    }

    /// Reads at most `count` of the tokens that are not read yet; at least one must be there.
    pub(super) fn feed(&mut self, runner: &R, count: usize) -> Result<()> {
        let failed = |source| Error::Model { position: self.position, tokens: 0, source };
        let state = match &mut self.state {
            Some(state) => state,
            none => none.insert(runner.new_state().map_err(failed)?),
        };
        let end = self.position.saturating_add(count.max(1)).min(self.tokens.len());
        let tokens = &self.tokens[self.position..end];
        assert!(!tokens.is_empty() && end <= runner.context(), "callers stay within transcript and context");
        runner.feed(state, self.position, tokens, &mut self.logits).map_err(|source| Error::Model {
            position: self.position,
            tokens: tokens.len(),
            source,
        })?;
        self.position = end;
        Ok(())
    }
}

impl<R: Runner> Transcript<R> {
    /// Reads the one token that is not read yet, a generated one. Where the runner can check them, guesses of what follows
    /// are read along, at most `most` of them; the logits are the same.
    pub(super) fn feed_generated(&mut self, runner: &R, most: usize) -> Result<()> {
        let last = self.tokens.len() - 1;
        assert_eq!(self.position, last, "the others were read");
        if let Some(logits) = self.ahead.take(self.tokens[last]) {
            self.logits.copy_from_slice(logits);
            self.position += 1;
            return Ok(());
        }
        if runner.each() == 1 {
            return self.feed(runner, 1);
        }
        let most = most.min(runner.each() - 1).min(runner.context() - self.tokens.len());
        let pays = most > 0 && (runner.guesses_always() || self.ahead.pays());
        let guesses = if pays { guess(&self.tokens, most) } else { &[] };
        let begin = Instant::now();
        let Some(state) = self.state.as_mut().filter(|_| !guesses.is_empty()) else {
            self.feed(runner, 1)?;
            self.ahead.read_one(begin.elapsed());
            return Ok(());
        };
        let rows = self.ahead.begin(self.tokens[last], guesses, runner.vocabulary());
        runner.feed_each(state, last, rows.0, rows.1).map_err(|source| Error::Model {
            position: last,
            tokens: guesses.len() + 1,
            source,
        })?;
        self.logits.copy_from_slice(self.ahead.began(begin.elapsed()));
        self.position += 1;
        Ok(())
    }

    /// What was guessed so far.
    pub(super) fn guessed(&self) -> Guessed {
        self.ahead.counts()
    }
}

/// How many tokens two lists have in common at their beginning.
pub(super) fn common_prefix(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
