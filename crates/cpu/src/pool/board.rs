//! What is posted at a desk: a job, cut into pieces that are claimed one at a time.
//!
//! The pieces are cut into shares, one for each thread, so that each reads a part of the weights from front to back; who is
//! done with its own share goes on with the others'.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use anemone_mil::lower::{Lasting, RESULTS};

use super::sync::{AtomicBool, AtomicU8, AtomicUsize, Cell, Ordering, spin};

/// How long the caller spins for what others have begun of a lasting job, all together, before it does it itself.
const PATIENCE: Duration = Duration::from_micros(10);
/// Floats that the input of a lasting job may begin behind the start of its memory, to lie on a cache line.
const ALIGN: usize = 16;

/// Work on somebody's stack.
pub(super) type Borrowed = *const (dyn Fn(usize) + Sync);

/// A job and how far it is.
#[derive(Debug)]
pub(super) struct Board {
    job: Job,
    shares: Box<[Share]>,
    panicked: AtomicBool,
    /// Of a lasting job: what it works on, how far each piece is, and what threads of the pool have computed.
    input: Vec<f32>,
    states: Vec<AtomicU8>,
    results: Vec<Cell<[f32; RESULTS]>>,
}

// SAFETY: a borrowed job is a reference that may be shared, and whoever lends it waits (`Pool::run`).
unsafe impl Send for Board {}
// SAFETY: as above; and the results of a piece are written by the one thread that claimed it, before it says that they are
// there, and read after that.
unsafe impl Sync for Board {}

#[derive(Debug)]
enum Job {
    None,
    Borrowed(Borrowed),
    Lasting(Arc<dyn Lasting>),
}

/// Pieces that one thread begins with. On a cache line of its own.
#[derive(Debug)]
#[repr(align(64))]
struct Share {
    next: AtomicUsize,
    end: AtomicUsize,
}

/// A piece that is not done, as far as anybody has said.
const OPEN: u8 = 0;
/// A piece whose results are on the board.
const DONE: u8 = 1;
/// A piece whose results the caller has.
const TAKEN: u8 = 2;

impl Board {
    /// A board without a job, whose jobs are cut into so many shares.
    pub(super) fn new(shares: usize) -> Self {
        let share = |_| Share { next: AtomicUsize::new(0), end: AtomicUsize::new(0) };
        Self {
            job: Job::None,
            shares: (0..shares).map(share).collect(),
            panicked: AtomicBool::new(false),
            input: Vec::new(),
            states: Vec::new(),
            results: Vec::new(),
        }
    }

    /// Makes room for lasting jobs of so many inputs and pieces.
    pub(super) fn reserve(&mut self, inputs: usize, pieces: usize) {
        self.input.resize(self.input.len().max(inputs + ALIGN), 0.0);
        let pieces = pieces.max(self.states.len());
        self.states.resize_with(pieces, || AtomicU8::new(OPEN));
        self.results.resize_with(pieces, || Cell::new([0.0; RESULTS]));
    }

    /// Writes a job whose pieces are calls of `work`.
    pub(super) fn lend(&mut self, work: Borrowed, pieces: usize) {
        self.job = Job::Borrowed(work);
        self.cut(pieces);
    }

    /// Writes a job on `x` that threads may be left behind in.
    pub(super) fn share(&mut self, work: &Arc<dyn Lasting>, x: &[f32]) {
        let (inputs, pieces) = (work.inputs(), work.pieces());
        self.reserve(inputs, pieces);
        let start = self.start();
        work.prepare(x, &mut self.input[start..][..inputs]);
        self.states[..pieces].iter().for_each(|s| s.store(OPEN, Ordering::Relaxed));
        self.job = Job::Lasting(Arc::clone(work));
        self.cut(pieces);
    }

    fn cut(&mut self, pieces: usize) {
        let n = self.shares.len();
        for (i, share) in self.shares.iter().enumerate() {
            share.next.store(pieces * i / n, Ordering::Relaxed);
            share.end.store(pieces * (i + 1) / n, Ordering::Relaxed);
        }
        self.panicked.store(false, Ordering::Relaxed);
    }

    fn start(&self) -> usize {
        self.input.as_ptr().align_offset(4 * ALIGN).min(ALIGN)
    }

    /// Claims pieces one after the other, those of share `first` first, until there are none or `work` says no.
    fn claim(&self, first: usize, mut work: impl FnMut(usize) -> bool) {
        let (before, from) = self.shares.split_at(first % self.shares.len());
        for share in from.iter().chain(before) {
            let end = share.end.load(Ordering::Relaxed);
            loop {
                let i = share.next.fetch_add(1, Ordering::Relaxed);
                if i >= end {
                    break;
                }
                if !work(i) {
                    return;
                }
            }
        }
    }

    /// Does what is unclaimed of the job, as thread `thread` of the pool. Does not panic if the work does.
    pub(super) fn help(&self, thread: usize) {
        match &self.job {
            Job::None => {}
            Job::Borrowed(_) => self.do_lent(thread),
            Job::Lasting(work) => self.claim(thread, |i| {
                let done = {
                    let results = self.results[i].get_mut();
                    // SAFETY: this thread has claimed the piece, so nobody else writes here; the caller reads when it is done.
                    let into = unsafe { results.deref() };
                    catch_unwind(AssertUnwindSafe(|| work.piece(self.input(work), i, into))).is_ok()
                };
                // One that panicked stays open: the caller does it again, and panics itself.
                if done {
                    self.states[i].store(DONE, Ordering::Release);
                }
                done
            }),
        }
    }

    /// Does what is unclaimed of a borrowed job. If it panics, all is claimed, and [`Board::panicked`] tells it.
    pub(super) fn do_lent(&self, thread: usize) {
        let Job::Borrowed(work) = self.job else { return };
        // SAFETY: the caller of `Pool::run`, whose closure this is, waits until nobody looks at the board.
        let work = unsafe { &*work };
        self.claim(thread, |i| {
            let done = catch_unwind(AssertUnwindSafe(|| work(i))).is_ok();
            if !done {
                self.panicked.store(true, Ordering::Relaxed);
                let all = |s: &Share| s.next.store(s.end.load(Ordering::Relaxed), Ordering::Relaxed);
                self.shares.iter().for_each(all);
            }
            done
        });
    }

    /// Whether a piece of a borrowed job panicked. Known when nobody looks at the board any more.
    pub(super) fn panicked(&self) -> bool {
        self.panicked.load(Ordering::Relaxed)
    }

    /// Does what is unclaimed of a lasting job, and gets all results, as its caller. What a thread has begun and not done in a
    /// while is done again. Tells whether there was such.
    ///
    /// # Panics
    /// If the work does.
    pub(super) fn take(&self, take: &mut dyn FnMut(usize, &[f32; RESULTS])) -> bool {
        let Job::Lasting(work) = &self.job else { return false };
        let mut results = [0.0; RESULTS];
        self.claim(0, |i| {
            self.states[i].store(TAKEN, Ordering::Relaxed);
            work.piece(self.input(work), i, &mut results);
            take(i, &results);
            true
        });
        let (mut patience, mut late) = (PATIENCE, false);
        for (i, state) in self.states[..work.pieces()].iter().enumerate() {
            let there = || match state.load(Ordering::Acquire) {
                OPEN => None,
                state => Some(state),
            };
            let mut state = there();
            if state.is_none() {
                state = spin(patience, there);
            }
            match state {
                Some(DONE) => {
                    let results = self.results[i].get();
                    // SAFETY: they were written before the piece was done, and no one writes them twice.
                    take(i, unsafe { results.deref() });
                }
                Some(_) => {}
                None => {
                    (patience, late) = (Duration::ZERO, true);
                    work.piece(self.input(work), i, &mut results);
                    take(i, &results);
                }
            }
        }
        late
    }

    fn input(&self, work: &Arc<dyn Lasting>) -> &[f32] {
        &self.input[self.start()..][..work.inputs()]
    }
}
