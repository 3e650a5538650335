//! What goes to the user: answers to standard output, everything about the way there to standard error.

use std::io::{IsTerminal, Write, stderr, stdin, stdout};

pub(crate) use anemone_cli::text::printable;

/// Whether to colour standard error.
pub(crate) fn colours_on_stderr() -> bool {
    stderr().is_terminal() && colours_wanted()
}

/// Whether to colour standard output.
pub(crate) fn colours_on_stdout() -> bool {
    stdout().is_terminal() && colours_wanted()
}

/// Whether somebody sits at both ends.
pub(crate) fn is_conversation() -> bool {
    stdin().is_terminal() && stdout().is_terminal()
}

/// By the convention of no-color.org, and not on terminals that have none.
fn colours_wanted() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// A line on standard error. That nobody reads it is no reason to fail.
pub(crate) fn note(line: &str) {
    drop(writeln!(stderr(), "{line}"));
}

/// What went wrong, on standard error.
pub(crate) fn complain(problem: &str) {
    let (on, off) = if colours_on_stderr() { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
    note(&format!("{on}error:{off} {}", printable(problem)));
}

/// Bold where standard output has colours.
pub(crate) fn bold(text: &str) -> String {
    if colours_on_stdout() { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
}
