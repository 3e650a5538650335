//! What the user sees while a model is fetched.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;

use indicatif::{ProgressBar, ProgressStyle};

/// Receives what an acquisition does. All methods may be called from the acquiring thread only, at any time.
pub trait Progress {
    /// One line worth reading later: which source is tried, why it failed, what is waited for.
    fn note(&self, line: &str);
    /// A transfer begins: what it is, how many bytes it has if known, how many are already here.
    fn begin(&self, what: &str, total: Option<u64>, done: u64);
    /// The transfer has come to `done` bytes.
    fn at(&self, done: u64);
    /// The transfer is over, well or not.
    fn end(&self);
    /// Whether to give up as soon as possible. Asked many times a second.
    fn stop(&self) -> bool {
        false
    }
}

/// Progress on standard error: bars where it is a terminal, otherwise a line for each thing begun.
pub struct Terminal {
    bar: Mutex<Option<ProgressBar>>,
    is_terminal: bool,
}

impl Default for Terminal {
    fn default() -> Self {
        Terminal { bar: Mutex::new(None), is_terminal: std::io::stderr().is_terminal() }
    }
}

impl Terminal {
    fn bar(&self) -> std::sync::MutexGuard<'_, Option<ProgressBar>> {
        self.bar.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Progress for Terminal {
    fn note(&self, line: &str) {
        let print = || drop(writeln!(std::io::stderr(), "{line}"));
        match self.bar().as_ref() {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    fn begin(&self, what: &str, total: Option<u64>, done: u64) {
        self.end();
        if !self.is_terminal {
            let size = total.map(|total| format!(", {:.1} MB", total as f64 / 1e6)).unwrap_or_default();
            let resumed = if done > 0 { format!(", from {:.1} MB on", done as f64 / 1e6) } else { String::new() };
            return self.note(&format!("  {what}{size}{resumed}"));
        }
        let bar = total.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
        let template = match total {
            Some(_) => "  {msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}",
            None => "  {msg} {spinner} {bytes}",
        };
        bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(what.to_owned());
        bar.set_position(done);
        bar.reset_eta();
        *self.bar() = Some(bar);
    }

    fn at(&self, done: u64) {
        if let Some(bar) = self.bar().as_ref() {
            bar.set_position(done);
        }
    }

    fn end(&self) {
        if let Some(bar) = self.bar().take() {
            bar.finish_and_clear();
        }
    }
}

/// Passes on only the wish to stop: for work whose course is not worth showing.
pub(super) struct Quiet<'a>(pub(super) &'a dyn Progress);

impl Progress for Quiet<'_> {
    fn note(&self, _: &str) {}
    fn begin(&self, _: &str, _: Option<u64>, _: u64) {}
    fn at(&self, _: u64) {}
    fn end(&self) {}
    fn stop(&self) -> bool {
        self.0.stop()
    }
}
