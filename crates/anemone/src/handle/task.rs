//! Anything else that is to be done with a session.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;

use async_channel::{Receiver, Sender};

use super::owner::Job;
use crate::{Error, Result};

/// The result of work that a session's owner does, on its way. Unlike an answer, work is done even if nobody waits for it.
#[derive(Debug)]
pub struct Pending<T> {
    result: Receiver<Result<T>>,
}

impl<T> Pending<T> {
    /// Waits for it. `pending.await` does the same in async code.
    ///
    /// # Errors
    /// [`Error::Poisoned`] when the work panicked, or an earlier request did.
    pub fn wait(self) -> Result<T> {
        self.result.recv_blocking().unwrap_or(Err(Error::Closed))
    }
}

impl<T: Send + 'static> IntoFuture for Pending<T> {
    type Output = Result<T>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<T>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.result.recv().await.unwrap_or(Err(Error::Closed)) })
    }
}

/// Work that is to be done.
pub(super) struct Task<F, T> {
    work: Option<F>,
    result: Sender<Result<T>>,
}

impl<F, T> Task<F, T> {
    pub(super) fn new(work: F) -> (Self, Pending<T>) {
        let (result, other_end) = async_channel::bounded(1);
        (Self { work: Some(work), result }, Pending { result: other_end })
    }
}

impl<S, F: FnOnce(&mut S) -> T + Send, T: Send> Job<S> for Task<F, T> {
    fn run(&mut self, subject: &mut S, _: &mut dyn FnMut()) {
        if let Some(work) = self.work.take() {
            // Whoever asked may have gone.
            drop(self.result.try_send(Ok(work(subject))));
        }
    }

    fn is_over(&self) -> bool {
        false
    }

    fn call_off(&mut self) {}

    fn fail(&mut self, said: &Arc<str>) {
        drop(self.result.try_send(Err(Error::Poisoned { said: said.to_string() })));
    }
}
