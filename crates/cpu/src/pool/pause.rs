//! When not to share work that the caller has to wait for.

use std::time::{Duration, Instant};

/// A wait for the last piece that no piece takes: its thread was put aside.
const LONG: Duration = Duration::from_micros(500);
/// How long the caller works alone after the first such wait; twice as long after each that comes soon again.
const SHORTEST: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_millis(64);

/// Work that may not be computed twice is done by its caller alone for a while after a thread was put aside in it: beside
/// another program that wants a processor for itself, waiting would take longer than sharing saves.
#[derive(Debug, Default)]
pub(super) struct Pause {
    /// The end and the length of the last one.
    last: Option<(Instant, Duration)>,
}

impl Pause {
    /// Whether to work alone at `now`, which is asked for only if there was reason before.
    pub(super) fn lasts(&mut self, now: impl FnOnce() -> Instant) -> bool {
        let Some((end, length)) = self.last else { return false };
        let now = now();
        if now >= end + length {
            self.last = None;
        }
        now < end
    }

    /// Takes notice that the caller has waited.
    pub(super) fn waited(&mut self, start: Instant, now: Instant) {
        if now.duration_since(start) >= LONG {
            let length = self.last.map_or(SHORTEST, |(_, length)| (2 * length).min(LONGEST));
            self.last = Some((now + length, length));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_while_threads_are_late_and_end_when_they_are_not() {
        let (start, mut pause) = (Instant::now(), Pause::default());
        let at = |ms| start + Duration::from_millis(ms);
        assert!(!pause.lasts(|| unreachable!("nothing was late")));
        pause.waited(at(0), at(0) + LONG / 2);
        assert!(!pause.lasts(|| unreachable!("nothing was late")));
        pause.waited(at(0), at(1));
        assert!(pause.lasts(|| at(2)) && !pause.lasts(|| at(3)) && !pause.lasts(|| at(4)));
        pause.waited(at(3), at(4));
        assert!(pause.lasts(|| at(7)) && !pause.lasts(|| at(8)) && !pause.lasts(|| at(12)));
        assert!(!pause.lasts(|| unreachable!("it was over for as long as it had lasted")));
        (0..100).for_each(|i| pause.waited(at(100 + i), at(101 + i)));
        assert!(pause.lasts(|| at(200 + 63)) && !pause.lasts(|| at(200 + 64)));
    }
}
