//! A session with an owner of its own, that many can ask at once.

mod answer;
mod mailbox;
mod owner;
mod sync;
mod task;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::thread;

use async_channel::Receiver;

pub use answer::{Answer, Update};
pub(crate) use owner::{Lend, Lent};
pub use task::Pending;

use crate::{Cancel, Error, Message, ModelRunner, Pooled, Request, Result, Runner, Session};
use answer::{Ask, Asking};
use mailbox::{End, Mailbox, Refused};
use owner::{Job, Jobs, Own, serve};
use task::Task;

/// A session that lives on a thread of its own, and takes requests from anywhere: threads, tasks of any executor.
///
/// Clones are cheap and share the session. Requests wait in a queue of bounded length and are done one after the other, in
/// the order in which they came; what is asked when the queue is full is refused at once ([`Error::Busy`]). A request
/// ends within one token of being called off or of its deadline, also while it waits. When the last handle is dropped,
/// what was asked before is still answered, and the thread ends by itself.
///
/// A panic in a prediction ends this session alone: whoever waits for it, and whoever asks later, gets
/// [`Error::Poisoned`]. Other sessions with the same model go on.
///
/// ```no_run
/// use anemone::{Model, ModelOptions, Request, Session, SessionHandle, Update};
///
/// let model = Model::open("smollm2".as_ref(), &ModelOptions::default())?;
/// let handle = SessionHandle::new(Session::new(model.into())?, 16)?;
/// let mut answer = handle.say("Why is the sky blue?", Request::default())?;
/// while let Some(update) = answer.next_blocking() {
///     if let Update::Text { text, .. } = update {
///         print!("{text}");
///     }
/// }
/// println!("\n{} tokens were in the cache", answer.wait()?.tokens_reused);
/// # Ok::<(), anemone::Error>(())
/// ```
///
/// ```no_run
/// # async fn ask(handle: anemone::SessionHandle) -> anemone::Result<()> {
/// let turn = handle.say("Why is the sky blue?", anemone::Request::default())?.await?;
/// println!("{}", turn.text);
/// let messages = handle.with(|session| session.messages().len())?.await?;
/// # Ok(())
/// # }
/// ```
pub struct SessionHandle<R: Runner + 'static = ModelRunner> {
    shared: Arc<Shared<R>>,
}

struct Shared<R: Runner + 'static> {
    jobs: Arc<Jobs<Session<R>>>,
    /// Calls off all that was asked.
    all: Cancel,
    position: Arc<AtomicUsize>,
    context: usize,
    /// Where the session comes back, if it does.
    back: Receiver<Session<R>>,
}

impl<R: Runner + 'static> SessionHandle<R> {
    /// Gives a session to a thread of its own. At most `queue` requests (at least one) wait while another is done.
    ///
    /// # Errors
    /// [`Error::Thread`] when the system starts no thread.
    pub fn new(session: Session<R>, queue: usize) -> Result<Self> {
        let (position, context) = (session.position(), session.context());
        Self::start(Own(session), position, context, queue)
    }

    /// As [`SessionHandle::new`], for a session of a pool, which needs a state only while it is asked something. Requests
    /// wait until the pool's budget allows one.
    ///
    /// # Errors
    /// As [`SessionHandle::new`].
    pub fn pooled(session: Pooled<R>, queue: usize) -> Result<Self> {
        let context = session.context();
        Self::start(session, 0, context, queue)
    }

    fn start(
        own: impl Lend<Session<R>> + Send + 'static,
        position: usize,
        context: usize,
        queue: usize,
    ) -> Result<Self> {
        let position = Arc::new(AtomicUsize::new(position));
        let jobs = Arc::new(Mailbox::new(queue.max(1)));
        let (back, other_end) = async_channel::bounded(1);
        let inbox = Arc::clone(&jobs);
        let work = move || {
            if let Some(session) = serve(&inbox, own) {
                // Most handles don't want it back.
                drop(back.try_send(session));
            }
        };
        thread::Builder::new().name("anemone-session".into()).spawn(work).map_err(|source| Error::Thread { source })?;
        Ok(Self { shared: Arc::new(Shared { jobs, all: Cancel::new(), position, context, back: other_end }) })
    }

    /// As [`Session::say`].
    ///
    /// # Errors
    /// [`Error::Busy`], [`Error::Poisoned`], [`Error::Closed`]; what else may go wrong comes with the answer.
    pub fn say(&self, text: impl Into<String>, request: Request) -> Result<Answer> {
        let text = text.into();
        self.ask(Box::new(move |session, request, events| session.say(&text, request, events)), request)
    }

    /// As [`Session::generate`].
    ///
    /// # Errors
    /// As [`SessionHandle::say`].
    pub fn generate(&self, messages: Vec<Message>, request: Request) -> Result<Answer> {
        self.ask(Box::new(move |session, request, events| session.generate(&messages, request, events)), request)
    }

    /// As [`Session::regenerate`].
    ///
    /// # Errors
    /// As [`SessionHandle::say`].
    pub fn regenerate(&self, request: Request) -> Result<Answer> {
        self.ask(Box::new(|session, request, events| session.regenerate(request, events)), request)
    }

    /// As [`Session::complete`].
    ///
    /// # Errors
    /// As [`SessionHandle::say`].
    pub fn complete(&self, prompt: Vec<u32>, request: Request) -> Result<Answer> {
        self.ask(Box::new(move |session, request, events| session.complete(&prompt, request, events)), request)
    }

    /// Does anything else with the session, in its turn: undo, rewind, fork, look.
    ///
    /// # Errors
    /// As [`SessionHandle::say`].
    pub fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Session<R>) -> T + Send + 'static,
    ) -> Result<Pending<T>> {
        let (task, pending) = Task::new(work);
        self.put(Box::new(task))?;
        Ok(pending)
    }

    fn ask(&self, ask: Ask<R>, request: Request) -> Result<Answer> {
        let Shared { all, position, context, .. } = &*self.shared;
        let (asking, answer) = Asking::new(ask, request, all, position, *context);
        self.put(Box::new(asking))?;
        Ok(answer)
    }

    fn put(&self, job: Box<dyn Job<Session<R>>>) -> Result<()> {
        self.shared.jobs.put(job).map_err(|refused| match refused {
            Refused::Full(waiting) => Error::Busy { waiting },
            Refused::Ended(end) => ended(end),
        })
    }

    /// How many requests are waiting, not counting the one that is being done.
    pub fn waiting(&self) -> usize {
        self.shared.jobs.waiting()
    }

    /// Whether a prediction panicked.
    pub fn is_poisoned(&self) -> bool {
        matches!(self.shared.jobs.end(), Some(End::Poisoned(_)))
    }

    /// Takes no more requests from any handle, calls off those that there are, and gives the session back (one of a pool is
    /// then no longer in it).
    ///
    /// # Errors
    /// [`Error::Poisoned`]; [`Error::Closed`] when another handle was closed before.
    pub fn close(self) -> Result<Session<R>> {
        self.shared.jobs.close();
        self.shared.all.cancel();
        let back = self.shared.back.recv_blocking();
        back.map_err(|_| self.shared.jobs.end().map_or(Error::Closed, ended))
    }
}

fn ended(end: End) -> Error {
    match end {
        End::Closed => Error::Closed,
        End::Poisoned(said) => Error::Poisoned { said: said.to_string() },
    }
}

impl<R: Runner + 'static> Clone for SessionHandle<R> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<R: Runner + 'static> Drop for Shared<R> {
    fn drop(&mut self) {
        // Not waited for: the last handle may be dropped in a task that must not block, or on the owner's own thread.
        self.jobs.close();
    }
}

impl<R: Runner + 'static> std::fmt::Debug for SessionHandle<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionHandle").field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
