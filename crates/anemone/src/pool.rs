//! Many sessions with one model, in bounded memory.

mod seat;

use std::sync::{Arc, Mutex, PoisonError, TryLockError, Weak};

use serde::Serialize;

pub use seat::Pooled;

use crate::{Error, LanguageModel, ModelRunner, PrefixStore, Result, Runner, Session};
use seat::Seat;

/// Sessions that share a model and a budget of memory for their states.
///
/// The weights are there once, however many sessions there are; a session costs its state. When a session is used and the
/// budget is spent, the one that was used longest ago and is idle gives up its state, to a snapshot if the pool has a
/// store; its transcript stays. When that session is used again its cache comes back from the snapshot, or is computed
/// anew. What is answered is the same in any case.
///
/// ```no_run
/// use anemone::{Model, ModelOptions, PrefixStore, Request, SessionPool, SnapshotLimits};
///
/// let model = Model::open("smollm2".as_ref(), &ModelOptions::default())?;
/// let store = PrefixStore::new("evicted", SnapshotLimits { count: 100, bytes: 4 << 30 });
/// let pool = SessionPool::new(model.into(), 1 << 30, Some(store))?;
/// let conversations: Vec<_> = (0..100).map(|_| pool.open()).collect::<Result<_, _>>()?;
/// for conversation in &conversations {
///     conversation.with(|session| session.say("Hi", &Request::default(), &mut |_| {}))??;
/// }
/// assert!(pool.counts().resident_bytes <= 1 << 30);
/// # Ok::<(), anemone::Error>(())
/// ```
pub struct SessionPool<R: Runner = ModelRunner> {
    shared: Arc<Shared<R>>,
}

/// What a pool has done so far, and what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PoolCounts {
    /// Sessions that there are.
    pub sessions: usize,
    /// Sessions that have a state.
    pub resident: usize,
    /// Bytes of these states, as if all of their columns were in use.
    pub resident_bytes: u64,
    /// The most that they ever took.
    pub peak_bytes: u64,
    /// How many states were given up.
    pub evicted: u64,
    /// How many of these were kept in a snapshot.
    pub kept: u64,
    /// How many came back from a snapshot.
    pub restored: u64,
    /// How many had to be computed anew.
    pub replayed: u64,
}

pub(crate) struct Shared<R: Runner> {
    model: Arc<LanguageModel<R>>,
    budget: u64,
    /// Bytes of one state.
    each: u64,
    store: Option<PrefixStore>,
    places: Mutex<Places<R>>,
}

struct Places<R: Runner> {
    seats: Vec<Weak<Seat<R>>>,
    /// Counts uses.
    clock: u64,
    counts: PoolCounts,
}

impl<R: Runner> SessionPool<R> {
    /// A pool whose sessions' states take at most `budget` bytes together. States that are given up are kept in `store`,
    /// if there is one.
    ///
    /// # Errors
    /// [`Error::Setting`] when the budget is less than one state.
    pub fn new(model: Arc<LanguageModel<R>>, budget: u64, store: Option<PrefixStore>) -> Result<Self> {
        let each = model.runner.state_bytes();
        if budget < each {
            let found = format!("{budget} bytes, and a state of this model takes {each}");
            return Err(Error::Setting { name: "budget", found, expected: "room for at least one state" });
        }
        let places = Places { seats: Vec::new(), clock: 0, counts: PoolCounts::default() };
        Ok(Self { shared: Arc::new(Shared { model, budget, each, store, places: Mutex::new(places) }) })
    }

    /// A new session.
    ///
    /// # Errors
    /// [`Error::Model`] when the model can't make a state.
    pub fn open(&self) -> Result<Pooled<R>> {
        let session = Session::new(Arc::clone(&self.shared.model))?;
        Ok(self.seat(session))
    }

    /// Takes a session of the same model in. Its state is given up until it is used.
    ///
    /// # Errors
    /// [`Error::Conversation`] when it is another model's.
    pub fn adopt(&self, session: Session<R>) -> Result<Pooled<R>> {
        if !Arc::ptr_eq(session.model(), &self.shared.model) {
            let problem = "the session is of another model than the pool's".into();
            return Err(Error::Conversation { operation: "adopt", problem });
        }
        Ok(self.seat(session))
    }

    fn seat(&self, mut session: Session<R>) -> Pooled<R> {
        if session.position() > 0 {
            let kept = session.rest(self.shared.store.as_ref());
            self.shared.with(|places| places.counts.kept += u64::from(kept));
        } else {
            session.rest(None);
        }
        let seat = Arc::new(Seat::new(session));
        self.shared.with(|places| places.seats.push(Arc::downgrade(&seat)));
        Pooled::new(seat, Arc::clone(&self.shared))
    }

    /// What there is, and what was done.
    pub fn counts(&self) -> PoolCounts {
        self.shared.with(|places| {
            places.measure(self.shared.each);
            places.counts
        })
    }

    /// The bytes that states may take.
    pub fn budget(&self) -> u64 {
        self.shared.budget
    }
}

impl<R: Runner> Clone for SessionPool<R> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<R: Runner> std::fmt::Debug for SessionPool<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (budget, counts) = (self.budget(), self.counts());
        f.debug_struct("SessionPool").field("budget", &budget).field("counts", &counts).finish()
    }
}

impl<R: Runner> Places<R> {
    /// Counts the sessions that are still there, and gives them.
    fn measure(&mut self, each: u64) -> Vec<Arc<Seat<R>>> {
        self.seats.retain(|seat| seat.strong_count() > 0);
        let seats: Vec<_> = self.seats.iter().filter_map(Weak::upgrade).collect();
        let resident = seats.iter().filter(|seat| seat.is_resident()).count();
        let counts = &mut self.counts;
        (counts.sessions, counts.resident, counts.resident_bytes) = (seats.len(), resident, resident as u64 * each);
        counts.peak_bytes = counts.peak_bytes.max(counts.resident_bytes);
        seats
    }
}

impl<R: Runner> Shared<R> {
    pub(crate) fn context(&self) -> usize {
        self.model.runner.context()
    }

    fn with<T>(&self, work: impl FnOnce(&mut Places<R>) -> T) -> T {
        work(&mut self.places.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes room for the state of a session that its user has locked, and gives it one.
    ///
    /// # Errors
    /// [`Error::PoolFull`] when all states that the budget allows are in use at this moment.
    pub(crate) fn admit(&self, seat: &Seat<R>, session: &mut Session<R>) -> Result<()> {
        self.with(|places| {
            places.clock += 1;
            seat.set_used(places.clock);
            if seat.is_resident() {
                return Ok(());
            }
            let seats = places.measure(self.each);
            let most = self.budget.checked_div(self.each).unwrap_or(u64::MAX);
            let mut resident: Vec<_> = seats.iter().filter(|other| other.is_resident()).collect();
            resident.sort_by_key(|other| other.used());
            let mut left = resident.len() as u64;
            for other in resident {
                if left < most {
                    break;
                }
                // Whoever uses a session holds its lock and waits for nothing but `places`, so nobody waits here.
                let kept = match other.session.try_lock() {
                    Ok(mut idle) => idle.rest(self.store.as_ref()),
                    // What it was in the midst of when it panicked, nobody knows; nobody uses it again either.
                    Err(TryLockError::Poisoned(broken)) => broken.into_inner().rest(None),
                    Err(TryLockError::WouldBlock) => continue,
                };
                other.set_resident(false);
                left -= 1;
                places.counts.evicted += 1;
                places.counts.kept += u64::from(kept);
            }
            if left >= most {
                return Err(Error::PoolFull { budget: self.budget, states: most });
            }
            seat.set_resident(true);
            places.measure(self.each);
            Ok(())
        })?;
        // Reading a snapshot holds nobody up.
        if let Some(restored) = session.wake(self.store.as_ref()) {
            self.with(|places| {
                places.counts.restored += u64::from(restored);
                places.counts.replayed += u64::from(!restored);
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
