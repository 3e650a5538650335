//! A pool of threads for work of microseconds: they spin for a moment between two jobs, then sleep.
//!
//! Pieces of a job are claimed one at a time, so a thread that the system has put aside holds up nobody: what it has not
//! claimed, others do.
#![allow(unsafe_code, reason = "a job borrows from its caller's stack, which outlives it by construction")]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anemone_mil::lower::Workers;

/// How long a thread spins for the next job before it sleeps.
const SPIN: Duration = Duration::from_micros(50);

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
    stop: AtomicBool,
}

struct Job {
    work: *const (dyn Fn(usize) + Sync),
    pieces: usize,
    next: AtomicUsize,
    panicked: AtomicBool,
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
                builder.spawn(move || shared.work()).expect("the system starts a thread")
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
        let mut job = Job { work, pieces, next: AtomicUsize::new(0), panicked: AtomicBool::new(false) };
        shared.open(&mut job);
        INSIDE.set(true);
        job.take_pieces();
        INSIDE.set(false);
        shared.close();
        assert!(!job.panicked.load(Ordering::Relaxed), "a piece of the work panicked");
    }
}

impl Job {
    fn take_pieces(&self) {
        loop {
            let i = self.next.fetch_add(1, Ordering::Relaxed);
            if i >= self.pieces {
                return;
            }
            // SAFETY: the caller of `Pool::run`, whose closure this is, waits until no thread is active.
            let work = unsafe { &*self.work };
            if catch_unwind(AssertUnwindSafe(|| work(i))).is_err() {
                self.panicked.store(true, Ordering::Relaxed);
                self.next.store(self.pieces, Ordering::Relaxed);
                return;
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
        let mut spins = 0u32;
        while self.active.load(Ordering::SeqCst) != 0 {
            spins += 1;
            if spins < 1000 { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }

    fn work(&self) {
        INSIDE.set(true);
        let mut seen = 0;
        while let Some(epoch) = self.wait(seen) {
            seen = epoch;
            self.active.fetch_add(1, Ordering::SeqCst);
            let job = self.job.load(Ordering::SeqCst);
            if !job.is_null() {
                // SAFETY: `close` first clears the pointer and then waits for `active` to be 0. This thread was counted as
                // active before it read the pointer, so the job outlives its use here.
                unsafe { &*job }.take_pieces();
            }
            self.active.fetch_sub(1, Ordering::SeqCst);
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
        let start = Instant::now();
        loop {
            for _ in 0..64 {
                if let Some(answer) = ready() {
                    return answer;
                }
                std::hint::spin_loop();
            }
            if start.elapsed() > SPIN {
                break;
            }
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
