//! A pool of threads for work of microseconds: they spin for a moment between two jobs, then sleep.
//!
//! The pieces of a job are cut into shares, one for each thread, so that each reads a part of the weights from front to back;
//! who is done with its own share goes on with the others'. Pieces are claimed one at a time, so a thread that the system
//! has put aside holds up nobody with what it has not claimed. For the one piece that it has, the caller waits: it spins for
//! a moment, then sleeps, which frees a processor for the thread to be moved to. (Doing the piece again instead would have
//! two threads write one result.)
#![allow(unsafe_code, reason = "a job borrows from its caller's stack, which outlives it by construction")]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anemone_kernels::columns::Columns;
use anemone_mil::lower::Workers;

/// How long a thread spins for the next job, or the caller for the last piece, before it sleeps.
const SPIN: Duration = Duration::from_micros(50);
/// The most shares that a job is cut into.
const SHARES: usize = 16;

/// Threads that share work. Cloning gives another handle to the same threads.
#[derive(Debug, Clone)]
pub struct Pool {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// Held by the caller whose job runs.
    busy: Mutex<()>,
}

#[derive(Debug, Default)]
struct Shared {
    /// The current job, or null. It lives on its caller's stack.
    job: AtomicPtr<Job>,
    /// Counts jobs, so that a thread takes each one once.
    epoch: AtomicU32,
    /// Threads that may hold the job's address.
    active: AtomicUsize,
    sleeping: Mutex<usize>,
    wake: Condvar,
    /// Whether the caller sleeps until `active` is 0.
    waiting: AtomicBool,
    idle: Mutex<()>,
    done: Condvar,
    stop: AtomicBool,
}

struct Job {
    work: *const (dyn Fn(usize) + Sync),
    shares: [Share; SHARES],
    panicked: AtomicBool,
}

/// Pieces that one thread begins with. On a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Share {
    next: AtomicUsize,
    end: usize,
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
        let shared = Arc::new(Shared::default());
        let threads = (1..threads.max(1))
            .map(|i| {
                let shared = Arc::clone(&shared);
                let builder = std::thread::Builder::new().name(format!("anemone-{i}"));
                builder.spawn(move || shared.work(i)).expect("the system starts a thread")
            })
            .collect();
        Self { inner: Arc::new(Inner { shared, threads, busy: Mutex::new(()) }) }
    }

    /// Calls `work(i)` once for each `i` below `pieces`, on any thread. Returns when all are done.
    ///
    /// # Panics
    /// If `work` panics.
    pub fn run(&self, pieces: usize, work: &(dyn Fn(usize) + Sync)) {
        let alone = pieces <= 1 || self.inner.threads.is_empty() || INSIDE.get();
        // Somebody else's job runs: do this one here rather than wait.
        let guard = if alone { None } else { self.inner.busy.try_lock().ok() };
        if guard.is_none() {
            (0..pieces).for_each(work);
            return;
        }
        let shared = &self.inner.shared;
        // SAFETY: only the lifetime is erased. `run` returns after `Shared::close`, when no thread can hold the pointer.
        let work = unsafe {
            std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), *const (dyn Fn(usize) + Sync + 'static)>(work)
        };
        let threads = (self.inner.threads.len() + 1).min(SHARES);
        let end = |i: usize| pieces * i.min(threads) / threads;
        let shares = std::array::from_fn(|i| Share { next: AtomicUsize::new(end(i)), end: end(i + 1) });
        let mut job = Job { work, shares, panicked: AtomicBool::new(false) };
        shared.open(&mut job);
        INSIDE.set(true);
        job.take_pieces(0);
        INSIDE.set(false);
        shared.close();
        assert!(!job.panicked.load(Ordering::Relaxed), "a piece of the work panicked");
    }
}

impl Job {
    /// Does the pieces of share `first`, then what is left of the others.
    fn take_pieces(&self, first: usize) {
        let (before, from) = self.shares.split_at(first % SHARES);
        for share in from.iter().chain(before) {
            loop {
                let i = share.next.fetch_add(1, Ordering::Relaxed);
                if i >= share.end {
                    break;
                }
                // SAFETY: the caller of `Pool::run`, whose closure this is, waits until no thread is active.
                let work = unsafe { &*self.work };
                if catch_unwind(AssertUnwindSafe(|| work(i))).is_err() {
                    self.panicked.store(true, Ordering::Relaxed);
                    self.shares.iter().for_each(|s| s.next.store(s.end, Ordering::Relaxed));
                    return;
                }
            }
        }
    }
}

impl Shared {
    fn open(&self, job: &mut Job) {
        self.job.store(job, Ordering::SeqCst);
        self.epoch.fetch_add(1, Ordering::SeqCst);
        if *self.sleeping.lock().unwrap_or_else(PoisonError::into_inner) > 0 {
            self.wake.notify_all();
        }
    }

    /// Takes the job back and waits until no thread can hold its address.
    fn close(&self) {
        self.job.store(std::ptr::null_mut(), Ordering::SeqCst);
        let idle = || (self.active.load(Ordering::SeqCst) == 0).then_some(());
        if spin(idle).is_some() {
            return;
        }
        let mut guard = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting.store(true, Ordering::SeqCst);
        while idle().is_none() {
            guard = self.done.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        self.waiting.store(false, Ordering::SeqCst);
    }

    /// Counts this thread as idle, and wakes the caller if it waits for that.
    fn leave(&self) {
        if self.active.fetch_sub(1, Ordering::SeqCst) == 1 && self.waiting.load(Ordering::SeqCst) {
            drop(self.idle.lock().unwrap_or_else(PoisonError::into_inner));
            self.done.notify_all();
        }
    }

    fn work(&self, thread: usize) {
        INSIDE.set(true);
        let mut seen = 0;
        while let Some(epoch) = self.wait(seen) {
            seen = epoch;
            self.active.fetch_add(1, Ordering::SeqCst);
            let job = self.job.load(Ordering::SeqCst);
            if !job.is_null() {
                // SAFETY: `close` first clears the pointer and then waits for `active` to be 0. This thread was counted as
                // active before it read the pointer, so the job outlives its use here.
                unsafe { &*job }.take_pieces(thread);
            }
            self.leave();
        }
    }

    /// Waits for a job later than `seen`; `None` when the pool ends.
    fn wait(&self, seen: u32) -> Option<u32> {
        let ready = || {
            if self.stop.load(Ordering::SeqCst) {
                return Some(None);
            }
            let epoch = self.epoch.load(Ordering::SeqCst);
            (epoch != seen).then_some(Some(epoch))
        };
        if let Some(answer) = spin(ready) {
            return answer;
        }
        let mut sleeping = self.sleeping.lock().unwrap_or_else(PoisonError::into_inner);
        *sleeping += 1;
        loop {
            if let Some(answer) = ready() {
                *sleeping -= 1;
                return answer;
            }
            sleeping = self.wake.wait(sleeping).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Asks until there is an answer, for [`SPIN`] at most.
fn spin<T>(ask: impl Fn() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        for _ in 0..64 {
            if let Some(answer) = ask() {
                return Some(answer);
            }
            std::hint::spin_loop();
        }
        if start.elapsed() > SPIN {
            return None;
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        drop(self.shared.sleeping.lock().unwrap_or_else(PoisonError::into_inner));
        self.shared.wake.notify_all();
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_is_done_once() {
        let pool = Pool::new(3);
        let mut out = vec![0.0; 1001];
        for round in 0..200 {
            pool.for_chunks(&mut out, 7, &|i, piece| piece.iter_mut().for_each(|x| *x += i as f32));
            if round % 50 == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        assert!(out.iter().enumerate().all(|(i, &x)| x == 200.0 * (i / 7) as f32));
    }

    #[test]
    fn every_column_of_every_matrix_is_done_once() {
        for threads in [1, 2, 5] {
            let pool = Pool::new(threads);
            let (mut a, mut b) = (vec![0.0; 3 * 50], vec![0.0; 3 * 7]);
            for _ in 0..100 {
                let mut outs = [Columns::new(&mut a, 50), Columns::new(&mut b, 7)];
                pool.for_columns(&mut outs, 4, &|matrix, first, mut piece| {
                    for row in 0..piece.rows() {
                        let columns = piece.row(row).iter_mut().enumerate();
                        columns.for_each(|(i, x)| *x += (matrix * 1000 + row * 100 + first + i) as f32);
                    }
                });
            }
            let expected =
                |matrix: usize, width: usize, i: usize| 100.0 * (matrix * 1000 + i / width * 100 + i % width) as f32;
            assert!((0..150).all(|i| a[i] == expected(0, 50, i)));
            assert!((0..21).all(|i| b[i] == expected(1, 7, i)));
        }
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_goes_on() {
        let pool = Pool::new(2);
        let caught = catch_unwind(AssertUnwindSafe(|| pool.run(8, &|i| assert!(i != 5, "no"))));
        assert!(caught.is_err());
        let sum = AtomicUsize::new(0);
        pool.run(8, &|i| {
            sum.fetch_add(i, Ordering::Relaxed);
        });
        assert_eq!(sum.into_inner(), 28);
    }

    #[test]
    fn jobs_within_jobs_and_from_several_threads_finish() {
        let pool = Pool::new(2);
        let sum = AtomicUsize::new(0);
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    pool.run(10, &|_| {
                        pool.run(10, &|_| {
                            sum.fetch_add(1, Ordering::Relaxed);
                        })
                    })
                });
            }
        });
        assert_eq!(sum.into_inner(), 400);
    }
}
