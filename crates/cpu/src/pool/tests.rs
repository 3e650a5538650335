use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

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

/// Each piece tells what it got; the pieces of a thread of the pool take as long as they are told to.
#[derive(Debug)]
struct Slow {
    pieces: usize,
    late: AtomicUsize,
    asked: AtomicUsize,
}

impl Lasting for Slow {
    fn inputs(&self) -> usize {
        2
    }

    fn pieces(&self) -> usize {
        self.pieces
    }

    fn prepare(&self, x: &[f32], input: &mut [f32]) {
        input.copy_from_slice(x);
    }

    fn piece(&self, input: &[f32], piece: usize, results: &mut [f32; RESULTS]) {
        assert!(input[0] >= 0.0, "no");
        self.asked.fetch_add(1, Ordering::Relaxed);
        let first = input[0];
        if std::thread::current().name().is_some_and(|n| n.starts_with("anemone-")) {
            std::thread::sleep(Duration::from_millis(self.late.load(Ordering::Relaxed) as u64));
        }
        assert_eq!(input, [first, 2.0 * first], "the input changed under a thread that was left behind");
        results.fill(first + piece as f32);
    }
}

fn results(pool: &Pool, work: &Arc<dyn Lasting>, x: f32) -> Vec<f32> {
    let mut found = vec![f32::NAN; work.pieces()];
    let mut take = |piece: usize, results: &[f32; RESULTS]| {
        assert!(found[piece].is_nan(), "taken twice");
        assert!(results.iter().all(|r| *r == results[0]));
        found[piece] = results[0];
    };
    assert!(pool.for_lasting(work, &[x, 2.0 * x], &mut take));
    found
}

#[test]
fn a_thread_that_is_late_is_left_behind() {
    for threads in [2, 3, 5] {
        let pool = Pool::new(threads);
        let slow = Arc::new(Slow { pieces: 40, late: AtomicUsize::new(0), asked: AtomicUsize::new(0) });
        let work: Arc<dyn Lasting> = slow.clone();
        pool.reserve(work.inputs(), work.pieces());
        for round in 0..2000_u16 {
            // Now and then every thread of the pool sleeps in what it has claimed.
            slow.late.store(if round % 100 == 0 { 20 } else { 0 }, Ordering::Relaxed);
            let x = f32::from(round);
            assert!(results(&pool, &work, x).iter().zip(0_u8..).all(|(&r, i)| r == x + f32::from(i)));
        }
        slow.late.store(10_000, Ordering::Relaxed);
        let start = Instant::now();
        while slow.asked.load(Ordering::Relaxed) < 2000 * 40 + 1000 {
            results(&pool, &work, 1.0);
        }
        assert!(start.elapsed() < Duration::from_secs(9), "somebody was waited for");
        slow.late.store(0, Ordering::Relaxed);
        // The threads that sleep for ten seconds are not waited for here either.
        std::mem::forget(pool);
    }
}

#[test]
fn lasting_work_that_panics_reaches_the_caller_and_the_pool_goes_on() {
    let pool = Pool::new(2);
    let work: Arc<dyn Lasting> = Arc::new(Slow { pieces: 40, late: AtomicUsize::new(0), asked: AtomicUsize::new(0) });
    for _ in 0..10 {
        assert!(catch_unwind(AssertUnwindSafe(|| results(&pool, &work, -1.0))).is_err());
        assert_eq!(results(&pool, &work, 1.0)[39], 40.0);
    }
    let done = AtomicUsize::new(0);
    pool.run(8, &|i| {
        done.fetch_add(i, Ordering::Relaxed);
    });
    assert_eq!(done.into_inner(), 28);
}
