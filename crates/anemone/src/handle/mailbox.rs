//! A bounded queue with one owner at its end. It is closed once, by its users or by a panic of the owner.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};

use super::sync::{Condvar, Mutex};

/// Jobs on their way to their owner.
pub(crate) struct Mailbox<J> {
    capacity: usize,
    content: Mutex<Content<J>>,
    changed: Condvar,
}

struct Content<J> {
    waiting: VecDeque<J>,
    end: Option<End>,
}

/// Why a mailbox takes no more jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Its users closed it. What was waiting is still done.
    Closed,
    /// The owner panicked, and said this.
    Poisoned(Arc<str>),
}

/// Why a job was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// So many are waiting, and no more may.
    Full(usize),
    Ended(End),
}

impl<J> Mailbox<J> {
    /// A queue for at most `capacity` waiting jobs.
    pub(crate) fn new(capacity: usize) -> Self {
        let content = Content { waiting: VecDeque::with_capacity(capacity.min(1024)), end: None };
        Self { capacity, content: Mutex::new(content), changed: Condvar::new() }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Content<J>) -> T) -> T {
        // Nothing below panics halfway through a change.
        work(&mut self.content.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Hands a job over, without waiting.
    pub(crate) fn put(&self, job: J) -> Result<(), Refused> {
        self.with(|content| match &content.end {
            Some(end) => Err(Refused::Ended(end.clone())),
            None if content.waiting.len() >= self.capacity => Err(Refused::Full(self.capacity)),
            None => {
                content.waiting.push_back(job);
                Ok(())
            }
        })?;
        self.changed.notify_one();
        Ok(())
    }

    /// The next job, waiting for it; none once the mailbox is closed and empty.
    pub(crate) fn take(&self) -> Option<J> {
        let mut content = self.content.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(job) = content.waiting.pop_front() {
                return Some(job);
            }
            if content.end.is_some() {
                return None;
            }
            content = self.changed.wait(content).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes out the waiting jobs for which `is_over` holds.
    pub(crate) fn sweep(&self, mut is_over: impl FnMut(&J) -> bool) -> Vec<J> {
        self.with(|content| {
            let mut over = Vec::new();
            for _ in 0..content.waiting.len() {
                match content.waiting.pop_front() {
                    Some(job) if is_over(&job) => over.push(job),
                    Some(job) => content.waiting.push_back(job),
                    None => break,
                }
            }
            over
        })
    }

    /// Takes no more jobs.
    pub(crate) fn close(&self) {
        self.with(|content| {
            content.end.get_or_insert(End::Closed);
        });
        self.changed.notify_all();
    }

    /// Takes no more jobs, since the owner panicked; gives those that were waiting.
    pub(crate) fn poison(&self, said: Arc<str>) -> Vec<J> {
        self.with(|content| {
            content.end = Some(End::Poisoned(said));
            content.waiting.drain(..).collect()
        })
    }

    /// Why no more jobs are taken, if so.
    pub(crate) fn end(&self) -> Option<End> {
        self.with(|content| content.end.clone())
    }

    /// How many jobs are waiting.
    pub(crate) fn waiting(&self) -> usize {
        self.with(|content| content.waiting.len())
    }
}
