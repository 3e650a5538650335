//! Exit codes: 0 all went well, 1 something failed, 2 wrong arguments, 130 interrupted.

use std::io::ErrorKind;
use std::process::ExitCode;

use anemone_cli::words;
use anemone_convert::ConvertError;
use anyhow::{Error, Result};

use crate::terminal;

/// The code of an interrupted program: 128 and the number of SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

/// Arguments that cannot be meant.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

/// The user called it off.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub(crate) struct Interrupted;

/// Something failed, and that was said when it did.
#[derive(Debug, thiserror::Error)]
#[error("failed")]
pub(crate) struct Said;

/// Says what went wrong and gives the code for it.
pub(crate) fn code(result: Result<()>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    if is_broken_pipe(&error) {
        // Whoever reads the output has read enough, as `head` does.
        return ExitCode::SUCCESS;
    }
    let stopped = matches!(error.downcast_ref(), Some(ConvertError::Stopped));
    if error.is::<Interrupted>() || stopped {
        terminal::note(&format!("{error}"));
        return INTERRUPTED.into();
    }
    if error.is::<Said>() {
        return 1.into();
    }
    terminal::complain(&words::told(&error));
    let usage = error.is::<Usage>()
        || matches!(error.downcast_ref(), Some(ConvertError::Options { .. }))
        || matches!(error.downcast_ref(), Some(anemone::Error::Setting { .. }));
    if usage { 2.into() } else { 1.into() }
}

fn is_broken_pipe(error: &Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    let json = || error.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
    io.or_else(json) == Some(ErrorKind::BrokenPipe)
}
