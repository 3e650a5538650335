//! An answer on its way from the owner's thread to whoever asked.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_channel::{Receiver, Sender};

use super::owner::Job;
use crate::{Cancel, Error, Event, Overflow, Overflowed, Request, Result, Runner, Session, StopReason, Turn};

/// What happens while an answer is generated: [`Event`] in a form that can be sent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Update {
    /// As [`Event::Prompt`].
    Prompt {
        /// Tokens in the cache.
        done: usize,
        /// Tokens of the whole prompt.
        total: usize,
    },
    /// The next piece of text.
    Text {
        /// The piece. All of them together are [`Turn::text`].
        text: String,
        /// How many tokens the answer has so far.
        tokens: usize,
    },
    /// As [`Event::Overflowing`].
    Overflowing {
        /// What is to be done.
        policy: Overflow,
        /// Tokens of the prompt that does not fit.
        tokens: usize,
    },
    /// As [`Event::Summarizing`].
    Summarizing {
        /// How many tokens the summary has so far.
        tokens: usize,
    },
    /// As [`Event::Overflow`].
    Overflow(Overflowed),
}

/// What comes back.
enum Reply {
    Update(Update),
    Done(Box<Result<Turn>>),
}

/// An answer that was asked for with a [`SessionHandle`](crate::SessionHandle).
///
/// It can be taken piece by piece or as a whole, waiting for it in a thread or in a task. To drop it is to call it off.
#[derive(Debug)]
#[must_use = "an answer that is dropped is called off"]
pub struct Answer {
    replies: Receiver<Reply>,
    done: Option<Result<Turn>>,
    cancel: Cancel,
}

impl Answer {
    /// What happens next; none once the answer is complete, or will never be.
    pub async fn next(&mut self) -> Option<Update> {
        if self.done.is_some() {
            return None;
        }
        let reply = self.replies.recv().await;
        self.take(reply.ok())
    }

    /// As [`Answer::next`], for code that is not async.
    pub fn next_blocking(&mut self) -> Option<Update> {
        if self.done.is_some() {
            return None;
        }
        let reply = self.replies.recv_blocking();
        self.take(reply.ok())
    }

    fn take(&mut self, reply: Option<Reply>) -> Option<Update> {
        match reply {
            Some(Reply::Update(update)) => return Some(update),
            Some(Reply::Done(result)) => self.done = Some(*result),
            None => self.done = Some(Err(Error::Closed)),
        }
        None
    }

    /// Waits until the answer is complete. `answer.await` does the same in async code.
    ///
    /// # Errors
    /// Those of [`Session::say`]; [`Error::Poisoned`] when a prediction panicked, for this request or one before it.
    pub fn wait(mut self) -> Result<Turn> {
        while self.next_blocking().is_some() {}
        self.result()
    }

    fn result(&mut self) -> Result<Turn> {
        self.done.take().unwrap_or(Err(Error::Closed))
    }

    /// Calls this answer off, and no other; within one token it ends. It can still be waited for.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }
}

impl IntoFuture for Answer {
    type Output = Result<Turn>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<Turn>> + Send>>;

    fn into_future(mut self) -> Self::IntoFuture {
        Box::pin(async move {
            while self.next().await.is_some() {}
            self.result()
        })
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// What is to be answered.
pub(super) type Ask<R> = Box<dyn FnOnce(&mut Session<R>, &Request, &mut dyn FnMut(Event<'_>)) -> Result<Turn> + Send>;

/// An answer that is to be generated.
pub(super) struct Asking<R: Runner> {
    ask: Option<Ask<R>>,
    request: Request,
    replies: Sender<Reply>,
    /// The session's position, for those whose turn never comes.
    position: Arc<AtomicUsize>,
    context: usize,
}

impl<R: Runner> Asking<R> {
    /// With its other end. `all` calls off everything that is asked of the handle.
    pub(super) fn new(
        ask: Ask<R>,
        mut request: Request,
        all: &Cancel,
        position: &Arc<AtomicUsize>,
        context: usize,
    ) -> (Self, Answer) {
        // As many replies as an answer has pieces, which the context bounds.
        let (replies, other_end) = async_channel::unbounded();
        let cancel = Cancel::below([&request.cancel, all]);
        request.cancel = cancel.clone();
        let asking = Self { ask: Some(ask), request, replies, position: Arc::clone(position), context };
        (asking, Answer { replies: other_end, done: None, cancel })
    }

    fn tell(&self, result: Result<Turn>) {
        // Whoever asked may have gone.
        drop(self.replies.try_send(Reply::Done(Box::new(result))));
    }
}

impl<R: Runner> Job<Session<R>> for Asking<R> {
    fn run(&mut self, session: &mut Session<R>, between: &mut dyn FnMut()) {
        let Some(ask) = self.ask.take() else { return };
        let (mut tokens, replies) = (0, &self.replies);
        let result = ask(session, &self.request, &mut |event| {
            between();
            let update = match event {
                Event::Prompt { done, total } => Update::Prompt { done, total },
                Event::Token { generated, .. } => {
                    tokens = generated;
                    return;
                }
                Event::Text(text) => Update::Text { text: text.to_owned(), tokens },
                Event::Overflowing { policy, tokens } => Update::Overflowing { policy, tokens },
                Event::Summarizing { tokens } => Update::Summarizing { tokens },
                Event::Overflow(overflowed) => Update::Overflow(overflowed.clone()),
            };
            drop(replies.try_send(Reply::Update(update)));
        });
        self.position.store(session.position(), Ordering::Relaxed);
        self.tell(result);
    }

    fn is_over(&self) -> bool {
        self.request.interrupted().is_some()
    }

    fn call_off(&mut self) {
        let reason = self.request.interrupted().unwrap_or(StopReason::Cancelled);
        self.tell(Ok(Turn::withdrawn(reason, self.position.load(Ordering::Relaxed), self.context)));
    }

    fn fail(&mut self, said: &Arc<str>) {
        self.tell(Err(Error::Poisoned { said: said.to_string() }));
    }
}
