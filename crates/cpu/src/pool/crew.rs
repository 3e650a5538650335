//! How the threads of a pool meet, and when memory that they work on may change.
//!
//! There are desks, each with a board of work. The caller writes a free desk's board and posts it; threads visit the desk
//! that is posted, and are counted there while they may look at its board. A desk with visitors is left as it is, however
//! long they stay: the caller goes on at another one. A thread visits one desk at a time, so with one more desk than
//! threads there is always a free one.

use std::time::Duration;

use super::sync::{AtomicBool, AtomicU64, AtomicUsize, Cell, Condvar, Mutex, Ordering, Reading, fence, spin};

/// How long a thread spins for the next posting, or the caller for the last visitor, before it sleeps.
const SPIN: Duration = Duration::from_micros(50);
/// Bits of a posting that tell the desk, counted from 1; 0 when nothing is posted. The others count postings.
const DESK: u64 = 0xffff;

/// Desks, and who is at them.
#[derive(Debug)]
pub(super) struct Crew<T> {
    /// The posting that is open, or the number of the last with no desk.
    current: AtomicU64,
    desks: Box<[Desk<T>]>,
    /// Whether threads may sleep that nobody has called yet.
    asleep: AtomicBool,
    bed: Mutex<()>,
    wake: Condvar,
    /// Whether the caller sleeps until a desk is empty.
    waiting: AtomicBool,
    idle: Mutex<()>,
    done: Condvar,
    stop: AtomicBool,
}

#[derive(Debug)]
#[repr(align(64))]
struct Desk<T> {
    visitors: AtomicUsize,
    board: Cell<T>,
}

// SAFETY: boards are written only between `Crew::free` and the posting, when nobody visits, and only read while visitors are
// counted; visitors on several threads share `&T`.
unsafe impl<T: Send + Sync> Sync for Desk<T> {}

/// What is posted, and the how manieth time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Posting(u64);

impl Posting {
    fn desk(self) -> Option<usize> {
        usize::try_from(self.0 & DESK).ok()?.checked_sub(1)
    }
}

impl<T> Crew<T> {
    /// A crew that has a desk for each board: one more than it has threads.
    pub(super) fn new(boards: impl IntoIterator<Item = T>) -> Self {
        let desk = |board| Desk { visitors: AtomicUsize::new(0), board: Cell::new(board) };
        let desks: Box<[_]> = boards.into_iter().map(desk).collect();
        assert!((desks.len() as u64) < DESK, "fewer than 2^16 threads");
        Self {
            current: AtomicU64::new(0),
            desks,
            asleep: AtomicBool::new(false),
            bed: Mutex::new(()),
            wake: Condvar::new(),
            waiting: AtomicBool::new(false),
            idle: Mutex::new(()),
            done: Condvar::new(),
            stop: AtomicBool::new(false),
        }
    }

    /// Posts a board that `write` has written, until the result is dropped.
    ///
    /// # Safety
    /// No other [`Posted`] of this crew lives, and nobody is in [`Crew::write_all`].
    pub(super) unsafe fn post(&self, write: impl FnOnce(&mut T)) -> Posted<'_, T> {
        let desk = loop {
            if let Some(desk) = (0..self.desks.len()).find(|&d| self.empty(d)) {
                break desk;
            }
            // A thread that went from one desk to another while they were looked at.
            spin(Duration::ZERO, || None::<()>);
        };
        {
            let board = self.desks[desk].board.get_mut();
            // SAFETY: nothing is posted, and the desk was empty after that. A thread that is counted there since finds that what
            // it came for is over (see `visit`), and does not look at the board.
            write(unsafe { board.deref() });
        }
        let number = self.current.load(Ordering::Relaxed) & !DESK;
        let posting = Posting(number.wrapping_add(DESK + 1) | (desk as u64 + 1));
        self.current.store(posting.0, Ordering::Release);
        // Behind it, either this sees that a thread sleeps or that thread sees the posting.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) {
            self.call();
        }
        Posted { crew: self, desk, posting, board: self.desks[desk].board.get() }
    }

    /// Writes every board, once nobody looks at it.
    ///
    /// # Safety
    /// No [`Posted`] of this crew lives, and nobody else is in here.
    pub(super) unsafe fn write_all(&self, mut write: impl FnMut(&mut T)) {
        for desk in 0..self.desks.len() {
            self.wait_until_empty(desk);
            let board = self.desks[desk].board.get_mut();
            // SAFETY: as in `post`.
            write(unsafe { board.deref() });
        }
    }

    /// Whether nobody looks at the board of a desk. Holds until the desk is posted again, once nothing is posted.
    fn empty(&self, desk: usize) -> bool {
        // Behind it, either this sees a visitor or that visitor sees that its posting is over.
        fence(Ordering::SeqCst);
        self.desks[desk].visitors.load(Ordering::Acquire) == 0
    }

    /// Waits until nobody looks at the board of a desk: spins, then sleeps.
    fn wait_until_empty(&self, desk: usize) {
        let empty = || self.empty(desk).then_some(());
        if spin(SPIN, empty).is_some() {
            return;
        }
        let mut guard = self.idle.lock().unwrap_or_else(|e| e.into_inner());
        self.waiting.store(true, Ordering::Relaxed);
        while empty().is_none() {
            guard = self.done.wait(guard).unwrap_or_else(|e| e.into_inner());
        }
        self.waiting.store(false, Ordering::Relaxed);
    }

    /// What a thread of the pool does until the pool ends: `work` at every board that is posted, once, unless it comes late.
    pub(super) fn serve(&self, mut work: impl FnMut(&T)) {
        let mut seen = Posting(0);
        while let Some(posting) = self.wait(seen) {
            seen = posting;
            self.visit(posting, &mut work);
        }
    }

    fn visit(&self, posting: Posting, work: &mut impl FnMut(&T)) {
        let Some(desk) = posting.desk() else { return };
        self.desks[desk].visitors.fetch_add(1, Ordering::Relaxed);
        let _visit = Visit { crew: self, desk };
        fence(Ordering::SeqCst);
        // Whoever closes it looks for visitors afterwards, behind a fence: it sees this one, or this sees that it is closed.
        if self.current.load(Ordering::Acquire) == posting.0 {
            let board = self.desks[desk].board.get();
            // SAFETY: while it has a visitor who came before it was closed, nobody writes the board.
            work(unsafe { board.deref() });
        }
    }

    /// Waits for a posting other than `seen`; `None` when the pool ends.
    fn wait(&self, seen: Posting) -> Option<Posting> {
        let ready = || {
            if self.stop.load(Ordering::Acquire) {
                return Some(None);
            }
            let posting = Posting(self.current.load(Ordering::Acquire));
            (posting != seen && posting.desk().is_some()).then_some(Some(posting))
        };
        if let Some(answer) = spin(SPIN, ready) {
            return answer;
        }
        let mut bed = self.bed.lock().unwrap_or_else(|e| e.into_inner());
        loop {
            self.asleep.store(true, Ordering::Relaxed);
            // Behind it, either this sees the posting or whoever posts sees that this sleeps.
            fence(Ordering::SeqCst);
            if let Some(answer) = ready() {
                return answer;
            }
            bed = self.wake.wait(bed).unwrap_or_else(|e| e.into_inner());
        }
    }

    /// Wakes all who sleep.
    fn call(&self) {
        let bed = self.bed.lock().unwrap_or_else(|e| e.into_inner());
        self.asleep.store(false, Ordering::Relaxed);
        drop(bed);
        self.wake.notify_all();
    }

    /// Ends the pool: threads return from `serve`.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.call();
    }
}

/// A board that is posted.
pub(super) struct Posted<'a, T> {
    crew: &'a Crew<T>,
    desk: usize,
    posting: Posting,
    board: Reading<T>,
}

impl<T> Posted<'_, T> {
    /// What is posted.
    pub(super) fn board(&self) -> &T {
        // SAFETY: boards are written by `post` and `write_all`, and neither is called while this lives.
        unsafe { self.board.deref() }
    }

    /// Ends the posting, and waits until no thread looks at the board.
    pub(super) fn finish(&self) {
        self.close();
        self.crew.wait_until_empty(self.desk);
    }

    fn close(&self) {
        self.crew.current.store(self.posting.0 & !DESK, Ordering::Release);
    }
}

impl<T> Drop for Posted<'_, T> {
    fn drop(&mut self) {
        self.close();
    }
}

/// A thread is counted at a desk.
struct Visit<'a, T> {
    crew: &'a Crew<T>,
    desk: usize,
}

impl<T> Drop for Visit<'_, T> {
    fn drop(&mut self) {
        let crew = self.crew;
        crew.desks[self.desk].visitors.fetch_sub(1, Ordering::Release);
        // Behind it, either this sees that the caller waits or the caller sees that this has left.
        fence(Ordering::SeqCst);
        if crew.waiting.load(Ordering::Relaxed) {
            drop(crew.idle.lock().unwrap_or_else(|e| e.into_inner()));
            crew.done.notify_all();
        }
    }
}
