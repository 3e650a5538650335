//! A session's place in a pool.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::Shared;
use crate::handle::{Lend, Lent};
use crate::{Error, ModelRunner, Result, Runner, Session};

/// A session, and what the pool knows of it. Only the pool changes that, while it holds its own lock.
pub(crate) struct Seat<R: Runner> {
    pub(super) session: Mutex<Session<R>>,
    resident: AtomicBool,
    used: AtomicU64,
}

impl<R: Runner> Seat<R> {
    /// For a session without a state.
    pub(super) fn new(session: Session<R>) -> Self {
        Self { session: Mutex::new(session), resident: AtomicBool::new(false), used: AtomicU64::new(0) }
    }

    pub(super) fn is_resident(&self) -> bool {
        self.resident.load(Ordering::Acquire)
    }

    pub(super) fn set_resident(&self, resident: bool) {
        self.resident.store(resident, Ordering::Release);
    }

    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Acquire)
    }

    pub(super) fn set_used(&self, clock: u64) {
        self.used.store(clock, Ordering::Release);
    }
}

/// A session of a [`SessionPool`](crate::SessionPool). It is gone when this is dropped.
pub struct Pooled<R: Runner = ModelRunner> {
    seat: Arc<Seat<R>>,
    pool: Arc<Shared<R>>,
}

impl<R: Runner> Pooled<R> {
    pub(super) fn new(seat: Arc<Seat<R>>, pool: Arc<Shared<R>>) -> Self {
        Self { seat, pool }
    }

    /// Uses the session. Its cache is there again before `work` begins, or will be computed by it. Several users of one
    /// session wait for each other.
    ///
    /// # Errors
    /// [`Error::PoolFull`] when all states that the budget allows are in use at this moment; [`Error::Poisoned`] when
    /// earlier work panicked. Then `work` was not begun.
    pub fn with<T>(&self, work: impl FnOnce(&mut Session<R>) -> T) -> Result<T> {
        let mut session = self.seat.session.lock().map_err(|_| poisoned())?;
        self.pool.admit(&self.seat, &mut session)?;
        Ok(work(&mut session))
    }

    /// Whether it has a state at this moment.
    pub fn is_resident(&self) -> bool {
        self.seat.is_resident()
    }

    /// How many tokens a state holds.
    pub(crate) fn context(&self) -> usize {
        self.pool.context()
    }

    /// Takes the session out of the pool; if it has no state at this moment, its next turn computes everything anew.
    ///
    /// # Errors
    /// [`Error::Poisoned`] when earlier work panicked; [`Error::Model`] when the model can't make a state.
    pub fn into_session(self) -> Result<Session<R>> {
        let mut session = self.seat.session.lock().map_err(|_| poisoned())?;
        let empty = Session::new(Arc::clone(session.model()))?;
        Ok(std::mem::replace(&mut session, empty))
    }
}

fn poisoned() -> Error {
    Error::Poisoned { said: "see the panic itself".into() }
}

impl<R: Runner> Lend<Session<R>> for Pooled<R> {
    fn lend(&mut self, work: &mut dyn FnMut(&mut Session<R>)) -> Lent {
        match self.with(work) {
            Ok(()) => Lent::Done,
            Err(Error::Poisoned { said }) => Lent::Broken(said.into()),
            Err(_) => {
                std::thread::sleep(Duration::from_millis(1));
                Lent::NotNow
            }
        }
    }

    fn back(self) -> Option<Session<R>> {
        self.into_session().ok()
    }
}

impl<R: Runner> std::fmt::Debug for Pooled<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pooled").field("resident", &self.is_resident()).finish_non_exhaustive()
    }
}
