//! Fetching that Ctrl-C can stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anemone_cli::acquire::{Progress, Terminal};

/// Progress on the terminal, with a flag that says stop.
pub(crate) struct Interruptible<'a> {
    terminal: &'a Terminal,
    stop: Arc<AtomicBool>,
}

impl<'a> Interruptible<'a> {
    pub(crate) fn new(terminal: &'a Terminal, stop: &Arc<AtomicBool>) -> Self {
        Self { terminal, stop: Arc::clone(stop) }
    }
}

impl Progress for Interruptible<'_> {
    fn note(&self, line: &str) {
        self.terminal.note(line);
    }

    fn begin(&self, what: &str, total: Option<u64>, done: u64) {
        self.terminal.begin(what, total, done);
    }

    fn at(&self, done: u64) {
        self.terminal.at(done);
    }

    fn end(&self) {
        self.terminal.end();
    }

    fn stop(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }
}
