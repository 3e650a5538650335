//! A session that rests: its transcript without a state.

use super::Session;
use crate::{PrefixStore, Runner};

impl<R: Runner> Session<R> {
    /// Gives the state up. Whether it is kept in `store`; what is not will be computed anew.
    pub(crate) fn rest(&mut self, store: Option<&PrefixStore>) -> bool {
        let (read, runner) = (self.transcript.read(), &self.model.runner);
        let kept = match store {
            Some(store) if !read.is_empty() => match store.put(runner, self.transcript.state(), read) {
                Ok(_) => true,
                Err(error) => {
                    tracing::warn!("{error}; the tokens will be computed anew");
                    false
                }
            },
            _ => false,
        };
        self.transcript.rest();
        kept
    }

    /// Takes from `store` what it has of the transcript. None if there was nothing to take, or it was not needed;
    /// otherwise whether anything was found.
    pub(crate) fn wake(&mut self, store: Option<&PrefixStore>) -> Option<bool> {
        let tokens = self.transcript.tokens();
        if self.position() > 0 || tokens.is_empty() {
            return None;
        }
        let found =
            store.and_then(|store| store.state_for(&self.model.runner, tokens, self.transcript.rested_at().max(1)));
        let restored = found.is_some();
        if let Some((state, columns)) = found {
            self.transcript.adopt(state, columns);
        }
        Some(restored)
    }
}
