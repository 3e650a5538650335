//! Independent work on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};

/// What a thread gives; its panic goes on here.
pub(super) fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Does `count` jobs on at most so many threads, the caller's included: each takes the next one that nobody has begun.
pub(super) fn at_once<T: Send>(threads: usize, count: usize, job: &(dyn Fn(usize) -> T + Sync)) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mine = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed)).take_while(|&i| i < count);
        mine.map(|i| (i, job(i))).collect::<Vec<_>>()
    };
    let mut all = thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(count)).map(|_| scope.spawn(work)).collect();
        let mut all = work();
        others.into_iter().for_each(|other| all.extend(joined(other)));
        all
    });
    all.sort_unstable_by_key(|(i, _)| *i);
    all.into_iter().map(|(_, done)| done).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_is_done_once_in_its_place() {
        for threads in [1, 2, 5] {
            for count in [0, 1, 2, 40] {
                let done = AtomicUsize::new(0);
                let all = at_once(threads, count, &|i| {
                    done.fetch_add(1, Ordering::Relaxed);
                    i * i
                });
                assert_eq!(all, (0..count).map(|i| i * i).collect::<Vec<_>>());
                assert_eq!(done.into_inner(), count);
            }
        }
    }
}
