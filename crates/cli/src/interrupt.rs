//! Ctrl-C: what it stops depends on what is going on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::exit::{INTERRUPTED, Interrupted};
use crate::terminal;

type Stop = Box<dyn Fn() + Send>;

/// What a Ctrl-C does; nothing here means that it ends the program.
static STOP: Mutex<Option<Stop>> = Mutex::new(None);
/// Whether a Ctrl-C has come that what goes on has not answered yet.
static PENDING: AtomicBool = AtomicBool::new(false);

/// So long after the first, another Ctrl-C is taken for the same: what goes on has time to clean up.
const SAME: Duration = Duration::from_millis(700);

/// Begins to listen, once.
pub(crate) fn listen() -> Result<()> {
    let mut first: Option<Instant> = None;
    ctrlc::set_handler(move || {
        let stop = STOP.lock().unwrap_or_else(PoisonError::into_inner);
        match stop.as_ref() {
            Some(stop) if !PENDING.swap(true, Ordering::SeqCst) => {
                first = Some(Instant::now());
                stop();
            }
            Some(_) if first.is_some_and(|first| first.elapsed() < SAME) => {}
            // A later one ends what the first could not stop. Whatever is being written has a name of its own until it is
            // complete.
            _ => std::process::exit(INTERRUPTED.into()),
        }
    })
    .context("cannot listen for Ctrl-C")
}

/// Has Ctrl-C call `stop` until the guard is dropped.
pub(crate) fn stops(stop: impl Fn() + Send + 'static) -> Guard {
    PENDING.store(false, Ordering::SeqCst);
    set(Some(Box::new(stop)));
    Guard(())
}

/// Has Ctrl-C set a flag until the guard is dropped.
pub(crate) fn sets(flag: &Arc<AtomicBool>) -> Guard {
    let flag = Arc::clone(flag);
    stops(move || flag.store(true, Ordering::SeqCst))
}

/// Ends the program, having said why.
pub(crate) fn end() -> ! {
    terminal::note(&Interrupted.to_string());
    std::process::exit(INTERRUPTED.into());
}

/// While it lives, Ctrl-C stops something less than the program.
pub(crate) struct Guard(());

impl Drop for Guard {
    fn drop(&mut self) {
        set(None);
        PENDING.store(false, Ordering::SeqCst);
    }
}

fn set(stop: Option<Stop>) {
    *STOP.lock().unwrap_or_else(PoisonError::into_inner) = stop;
}
