//! How far a conversion is: a bar on a terminal, now and then a line elsewhere.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::terminal;

/// Without a terminal a line is due after so long.
const EVERY: Duration = Duration::from_secs(5);

/// Does `work` on a thread of its own and shows how far it is: `at` tells what is being done, and how much of `total` is.
pub(super) fn during<T: Send>(total: u64, at: impl Fn() -> (&'static str, u64), work: impl FnOnce() -> T + Send) -> T {
    let done = std::thread::scope(|scope| {
        let work = scope.spawn(work);
        let mut course = Course::new(total);
        while !work.is_finished() {
            let (what, done) = at();
            course.at(what, done);
            std::thread::park_timeout(Duration::from_millis(100));
        }
        course.end();
        work.join()
    });
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// One stretch of work that is shown.
struct Course {
    bar: ProgressBar,
    lines: Option<Lines>,
    begin: Instant,
}

impl Course {
    fn new(total: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("  {msg} {wide_bar} {percent:>3} % {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let lines = (!stderr().is_terminal()).then_some(Lines { total, due: EVERY });
        Self { bar, lines, begin: Instant::now() }
    }

    fn at(&mut self, what: &'static str, done: u64) {
        self.bar.set_message(what);
        self.bar.set_position(done);
        let line = self.lines.as_mut().and_then(|lines| lines.at(self.begin.elapsed(), what, done));
        line.iter().for_each(|line| terminal::note(line));
    }

    fn end(self) {
        self.bar.finish_and_clear();
    }
}

struct Lines {
    total: u64,
    due: Duration,
}

impl Lines {
    fn at(&mut self, now: Duration, what: &str, done: u64) -> Option<String> {
        if now < self.due {
            return None;
        }
        self.due = now + EVERY;
        Some(format!("  {what}: {} % after {} s", 100 * done.min(self.total) / self.total.max(1), now.as_secs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_now_and_then() {
        let mut lines = Lines { total: 200, due: EVERY };
        let mut at = |seconds, done| lines.at(Duration::from_secs(seconds), "writing", done);
        assert_eq!(at(0, 0), None);
        assert_eq!(at(6, 50).as_deref(), Some("  writing: 25 % after 6 s"));
        assert_eq!(at(7, 60), None);
        assert_eq!(at(30, 201).as_deref(), Some("  writing: 100 % after 30 s"));
        assert_eq!(at(31, 201), None, "what was late is not made up for");
    }
}
