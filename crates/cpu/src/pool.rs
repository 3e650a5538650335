//! A pool of threads for work of microseconds: they spin for a moment between two jobs, then sleep.
//!
//! The pieces of a job are claimed one at a time ([`board`]), so a thread that the system has put aside holds up nobody with
//! what it has not claimed. What it has claimed of a lasting job ([`Lasting`]) its caller computes again, and goes on; the
//! memory of that job is not used again until the thread has come back and left ([`crew`]). For a job that is only lent, the
//! caller waits: it spins for a moment, then sleeps, which frees a processor for the thread to be moved to; and does the next
//! ones alone for a while ([`pause`]).
#![allow(unsafe_code, reason = "a job borrows from its caller's stack, which outlives it by construction")]

mod board;
mod crew;
mod pause;
mod sync;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::Instant;

use anemone_kernels::columns::Columns;
use anemone_mil::lower::{Lasting, RESULTS, Workers};

use board::{Board, Borrowed};
use crew::Crew;
use pause::Pause;

/// The most shares that a job is cut into.
const SHARES: usize = 16;

/// Threads that share work. Cloning gives another handle to the same threads.
#[derive(Debug, Clone)]
pub struct Pool {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    crew: Arc<Crew<Board>>,
    threads: Vec<JoinHandle<()>>,
    /// Held by the caller whose job runs.
    busy: Mutex<Pause>,
    /// Inputs and pieces that every board has room for.
    room: [AtomicUsize; 2],
}

thread_local! {
    /// Whether this thread is inside a job: jobs within jobs run on their own thread.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

impl Pool {
    /// A pool of `threads` threads, the caller's included.
    ///
    /// # Panics
    /// If the system refuses to start a thread.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        let threads = threads.max(1);
        let crew = Arc::new(Crew::new((0..threads).map(|_| Board::new(threads.min(SHARES)))));
        let threads = (1..threads)
            .map(|i| {
                let crew = Arc::clone(&crew);
                let builder = std::thread::Builder::new().name(format!("anemone-{i}"));
                let work = move || {
                    INSIDE.set(true);
                    crew.serve(|board| board.help(i));
                };
                builder.spawn(work).expect("the system starts a thread")
            })
            .collect();
        Self {
            inner: Arc::new(Inner { crew, threads, busy: Mutex::default(), room: [const { AtomicUsize::new(0) }; 2] }),
        }
    }

    /// Makes room for lasting jobs of so many inputs and pieces, so that they allocate nothing.
    pub(crate) fn reserve(&self, inputs: usize, pieces: usize) {
        let (wanted, room) = ([inputs, pieces], &self.inner.room);
        if self.inner.threads.is_empty() || (0..2).all(|i| room[i].load(Ordering::Relaxed) >= wanted[i]) {
            return;
        }
        let _busy = self.inner.busy.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: nothing is posted, since whoever posts holds `busy` until that is closed.
        unsafe { self.inner.crew.write_all(|board| board.reserve(inputs, pieces)) };
        for (room, wanted) in room.iter().zip(wanted) {
            room.fetch_max(wanted, Ordering::Relaxed);
        }
    }

    /// The right to post; nothing where the caller had better do without.
    fn enter(&self) -> Option<MutexGuard<'_, Pause>> {
        if self.inner.threads.is_empty() || INSIDE.get() {
            return None;
        }
        // Somebody else's job runs: do this one here rather than wait.
        match self.inner.busy.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(e)) => Some(e.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Calls `work(i)` once for each `i` below `pieces`, on any thread. Returns when all are done.
    ///
    /// # Panics
    /// If `work` panics.
    pub fn run(&self, pieces: usize, work: &(dyn Fn(usize) + Sync)) {
        let entered = if pieces > 1 { self.enter() } else { None };
        let Some(mut pause) = entered.and_then(|mut pause| (!pause.lasts(Instant::now)).then_some(pause)) else {
            (0..pieces).for_each(work);
            return;
        };
        // SAFETY: only the lifetime is erased. `run` returns after `finish`, when no thread can hold the pointer, and nothing
        // in between panics.
        let work: Borrowed = unsafe {
            std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), *const (dyn Fn(usize) + Sync + 'static)>(work)
        };
        // SAFETY: whoever posts holds `busy` for as long as it is posted.
        let posted = unsafe { self.inner.crew.post(|board| board.lend(work, pieces)) };
        let inside = Inside::new();
        posted.board().do_lent(0);
        drop(inside);
        let start = Instant::now();
        posted.finish();
        pause.waited(start, Instant::now());
        let panicked = posted.board().panicked();
        drop(posted);
        drop(pause);
        assert!(!panicked, "a piece of the work panicked");
    }
}

/// The caller is inside a job.
struct Inside;

impl Inside {
    fn new() -> Self {
        INSIDE.set(true);
        Self
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.crew.stop();
        for t in self.threads.drain(..) {
            // A thread that panicked outside a job has nothing left to tell.
            let _ = t.join();
        }
    }
}

impl Workers for Pool {
    fn count(&self) -> usize {
        self.inner.threads.len() + 1
    }

    fn for_chunks(&self, out: &mut [f32], chunk: usize, f: &(dyn Fn(usize, &mut [f32]) + Sync)) {
        assert!(chunk > 0, "pieces of at least one element");
        let (len, start) = (out.len(), out.as_mut_ptr() as usize);
        self.run(len.div_ceil(chunk), &|i| {
            let at = i * chunk;
            // SAFETY: piece `i` is handed out once, and pieces do not overlap; `out` is borrowed for the whole call.
            let piece = unsafe {
                std::slice::from_raw_parts_mut(
                    std::ptr::with_exposed_provenance_mut::<f32>(start).add(at),
                    chunk.min(len - at),
                )
            };
            f(i, piece);
        });
    }

    fn for_columns(&self, outs: &mut [Columns<'_>], piece: usize, f: &(dyn Fn(usize, usize, Columns<'_>) + Sync)) {
        assert!(piece > 0, "pieces of at least one column");
        let outs = &*outs;
        let pieces = |out: &Columns<'_>| out.width().div_ceil(piece);
        self.run(outs.iter().map(pieces).sum(), &|mut i| {
            for (matrix, out) in outs.iter().enumerate() {
                if i < pieces(out) {
                    let first = i * piece;
                    // SAFETY: each piece is handed out once, and pieces do not overlap; `outs` is borrowed exclusively.
                    let columns = unsafe { out.piece(first..out.width().min(first + piece)) };
                    return f(matrix, first, columns);
                }
                i -= pieces(out);
            }
        });
    }

    fn for_lasting(&self, work: &Arc<dyn Lasting>, x: &[f32], take: &mut dyn FnMut(usize, &[f32; RESULTS])) -> bool {
        let Some(_busy) = self.enter() else { return false };
        // SAFETY: as in `run`.
        let posted = unsafe { self.inner.crew.post(|board| board.share(work, x)) };
        let _inside = Inside::new();
        posted.board().take(take);
        true
    }
}
