//! Every interleaving of a caller and the threads of a pool, at the level of the desks and boards that it is made of.
//!
//! The files are those of the library; only what they meet with is loom's, which runs a small scenario again and again until
//! no order of events is left that it has not tried (with at most three preemptions), and which fails where two threads are at
//! one piece of memory and one of them writes. Nothing spins here: who would spin asks once, then sleeps or goes on.
#![allow(unsafe_code, reason = "the files of the pool ask for it")]

#[path = "../src/pool/board.rs"]
#[allow(dead_code, reason = "the scenarios need not use all of it")]
mod board;
#[path = "../src/pool/crew.rs"]
#[allow(dead_code, reason = "the scenarios need not use all of it")]
mod crew;

mod sync {
    use std::time::Duration;

    use loom::cell::{ConstPtr, MutPtr, UnsafeCell};
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};
    pub(crate) use loom::sync::{Condvar, Mutex};

    pub(crate) fn spin<T>(_long: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
        let answer = ask();
        if answer.is_none() {
            loom::thread::yield_now();
        }
        answer
    }

    #[derive(Debug)]
    pub(crate) struct Cell<T>(UnsafeCell<T>);

    impl<T> Cell<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(UnsafeCell::new(value))
        }

        pub(crate) fn get(&self) -> Reading<T> {
            Reading(self.0.get())
        }

        pub(crate) fn get_mut(&self) -> Writing<T> {
            Writing(self.0.get_mut())
        }
    }

    pub(crate) struct Reading<T>(ConstPtr<T>);

    impl<T> Reading<T> {
        pub(crate) unsafe fn deref(&self) -> &T {
            // SAFETY: as the caller promises, which loom checks.
            unsafe { self.0.deref() }
        }
    }

    pub(crate) struct Writing<T>(MutPtr<T>);

    impl<T> Writing<T> {
        #[expect(clippy::mut_from_ref, reason = "the caller answers for it")]
        pub(crate) unsafe fn deref(&self) -> &mut T {
            // SAFETY: as the caller promises, which loom checks.
            unsafe { self.0.deref() }
        }
    }
}

use std::panic::resume_unwind;
use std::sync::Arc as StdArc;

use anemone_mil::lower::{Lasting, RESULTS};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread::{self, JoinHandle, ThreadId};

use board::{Board, Borrowed};
use crew::Crew;

fn explore(scenario: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(scenario);
}

/// A crew with so many threads of its own.
fn crew(threads: usize, shares: usize) -> (Arc<Crew<Board>>, Vec<JoinHandle<()>>) {
    let crew = Arc::new(Crew::new((0..=threads).map(|_| Board::new(shares))));
    let serve = |i| {
        let crew = Arc::clone(&crew);
        thread::spawn(move || crew.serve(|board| board.help(i)))
    };
    let threads = (1..=threads).map(serve).collect();
    (crew, threads)
}

fn end(crew: &Crew<Board>, threads: Vec<JoinHandle<()>>) {
    crew.stop();
    threads.into_iter().for_each(|t| t.join().unwrap());
}

/// What the caller of `Pool::run` does.
fn run(crew: &Crew<Board>, pieces: usize, work: &(dyn Fn(usize) + Sync)) -> bool {
    // SAFETY: only the lifetime is erased, and the posting is finished before this returns.
    let work: Borrowed = unsafe {
        std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), *const (dyn Fn(usize) + Sync + 'static)>(work)
    };
    // SAFETY: nothing else is posted.
    let posted = unsafe { crew.post(|board| board.lend(work, pieces)) };
    posted.board().do_lent(0);
    posted.finish();
    posted.board().panicked()
}

/// Results that tell the input and the piece. It may panic everywhere but in one thread.
#[derive(Debug)]
struct Probe {
    pieces: usize,
    panics_but_in: Option<ThreadId>,
}

impl Lasting for Probe {
    fn inputs(&self) -> usize {
        1
    }

    fn pieces(&self) -> usize {
        self.pieces
    }

    fn prepare(&self, x: &[f32], input: &mut [f32]) {
        input.copy_from_slice(x);
    }

    fn piece(&self, input: &[f32], piece: usize, results: &mut [f32; RESULTS]) {
        // A thread may be put aside between what it reads and what it writes.
        thread::yield_now();
        if self.panics_but_in.is_some_and(|t| t != thread::current().id()) {
            resume_unwind(Box::new("broke"));
        }
        results[0] = input[0] + piece as f32;
    }
}

/// What the caller of `Pool::for_lasting` does; the results, each once.
fn take(crew: &Crew<Board>, work: &StdArc<dyn Lasting>, x: f32) -> Vec<f32> {
    let mut results = vec![f32::NAN; work.pieces()];
    // SAFETY: nothing else is posted.
    let posted = unsafe { crew.post(|board| board.share(work, &[x])) };
    posted.board().take(&mut |piece, found| {
        assert!(results[piece].is_nan(), "taken twice");
        results[piece] = found[0];
    });
    results
}

/// Work on the caller's stack is done once, and nobody is at it when the caller goes on.
#[test]
fn what_is_lent_is_done_once_before_the_caller_goes_on() {
    explore(|| {
        let (crew, threads) = crew(1, 2);
        for _ in 0..2 {
            let done = [AtomicUsize::new(0), AtomicUsize::new(0)];
            assert!(!run(&crew, 2, &|i| {
                done[i].fetch_add(1, Ordering::Relaxed);
            }));
            assert!(done.iter().all(|d| d.load(Ordering::Relaxed) == 1));
        }
        end(&crew, threads);
    });
}

/// A thread may be left behind in one job while the caller posts the next ones: each gives its own results, no memory is
/// written that somebody still reads, and a desk that was left is used again.
#[test]
fn who_is_left_behind_disturbs_nobody() {
    explore(|| {
        let (crew, threads) = crew(1, 1);
        let work: StdArc<dyn Lasting> = StdArc::new(Probe { pieces: 1, panics_but_in: None });
        for x in [10.0, 20.0, 30.0] {
            assert_eq!(take(&crew, &work, x), [x]);
        }
        end(&crew, threads);
    });
}

/// The same with pieces for both.
#[test]
fn a_thread_and_the_caller_share() {
    explore(|| {
        let (crew, threads) = crew(1, 2);
        let work: StdArc<dyn Lasting> = StdArc::new(Probe { pieces: 2, panics_but_in: None });
        assert_eq!(take(&crew, &work, 10.0), [10.0, 11.0]);
        end(&crew, threads);
    });
}

/// Both kinds in turns, as the steps of a plan are.
#[test]
fn work_that_is_lent_follows_work_that_lasts() {
    explore(|| {
        let (crew, threads) = crew(1, 2);
        let work: StdArc<dyn Lasting> = StdArc::new(Probe { pieces: 1, panics_but_in: None });
        assert_eq!(take(&crew, &work, 10.0), [10.0]);
        let done = [AtomicUsize::new(0), AtomicUsize::new(0)];
        assert!(!run(&crew, 2, &|i| {
            done[i].fetch_add(1, Ordering::Relaxed);
        }));
        assert!(done.iter().all(|d| d.load(Ordering::Relaxed) == 1));
        end(&crew, threads);
    });
}

/// A panic in what is lent reaches the caller, whoever had it, and the crew goes on.
#[test]
fn a_panic_reaches_the_caller_and_the_crew_goes_on() {
    explore(|| {
        let (crew, threads) = crew(1, 2);
        assert!(run(&crew, 2, &|i| if i == 1 {
            resume_unwind(Box::new("broke"))
        }));
        assert!(!run(&crew, 1, &|_| {}));
        end(&crew, threads);
    });
}

/// What a thread has broken off, the caller does. (Its own panics it does not survive; see the tests of the pool.)
#[test]
fn the_caller_does_what_a_thread_breaks_off() {
    explore(|| {
        let (crew, threads) = crew(1, 1);
        let work: StdArc<dyn Lasting> = StdArc::new(Probe { pieces: 1, panics_but_in: Some(thread::current().id()) });
        for x in [10.0, 20.0] {
            assert_eq!(take(&crew, &work, x), [x]);
        }
        end(&crew, threads);
    });
}

/// Room is made while a thread may still be at a board.
#[test]
fn boards_are_written_when_nobody_is_there() {
    explore(|| {
        let (crew, threads) = crew(1, 1);
        let work: StdArc<dyn Lasting> = StdArc::new(Probe { pieces: 1, panics_but_in: None });
        assert_eq!(take(&crew, &work, 10.0), [10.0]);
        // SAFETY: nothing is posted.
        unsafe { crew.write_all(|board| board.reserve(2, 2)) };
        assert_eq!(take(&crew, &work, 20.0), [20.0]);
        end(&crew, threads);
    });
}

/// A pool that ends before, while or after its threads look for work.
#[test]
fn the_end_reaches_every_thread() {
    explore(|| {
        let (crew, threads) = crew(2, 1);
        end(&crew, threads);
    });
}
