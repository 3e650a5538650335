//! Crates below us that break on some input from outside must not break us.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use crate::{Error, Result};

/// Runs `work`; if it panics, that is an error, which `broke` makes from what the panic said.
pub(crate) fn guard<T>(broke: impl FnOnce(String) -> Error, work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(broke(format!("it broke on this input: {}", said.unwrap_or("no reason given"))))
    })
}

/// Stack of [`guard_deep`]'s thread, in bytes. The system gives memory only to what is used of it.
const DEEP_STACK: usize = 256 << 20;

/// As [`guard`], with a stack for work that recurses as deep as its input is long: an overflow would end the process.
pub(crate) fn guard_deep<T: Send>(
    broke: impl Fn(String) -> Error + Sync,
    work: impl FnOnce() -> Result<T> + Send,
) -> Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(DEEP_STACK).spawn_scoped(scope, || guard(&broke, work));
        match thread.map(thread::ScopedJoinHandle::join) {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(broke("its thread broke".into())),
            Err(error) => Err(broke(format!("no thread can be started: {error}"))),
        }
    })
}
