//! The log: on standard error, by `-v` or `ANEMONE_LOG`.

use std::io::stderr;

use anyhow::Result;
use tracing_subscriber::EnvFilter;

use crate::exit::Usage;
use crate::terminal;

const VARIABLE: &str = "ANEMONE_LOG";

/// Starts the log. The environment wins over `-v`.
pub(crate) fn start(verbose: u8) -> Result<()> {
    let level = ["error", "info", "debug", "trace"][usize::from(verbose.min(3))];
    let asked = std::env::var(VARIABLE).ok().filter(|filter| !filter.is_empty());
    let filter = asked.as_deref().unwrap_or(level);
    let filter = EnvFilter::try_new(filter).map_err(|e| {
        Usage(format!("{VARIABLE}={filter}: {e}; expected a level such as debug, or anemone_cpu=trace"))
    })?;
    let log = tracing_subscriber::fmt().with_writer(stderr).with_ansi(terminal::colours_on_stderr()).without_time();
    // That nobody can read it is no reason to fail.
    log.log_internal_errors(false).with_env_filter(filter).init();
    Ok(())
}
