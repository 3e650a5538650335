//! Crates below us that break on some input from outside must not break us.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{Error, Result};

/// Runs `work`; if it panics, that is an error, which `broke` makes from what the panic said.
pub(crate) fn guard<T>(broke: impl FnOnce(String) -> Error, work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(broke(format!("it broke on this input: {}", said.unwrap_or("no reason given"))))
    })
}
