//! Names of signals.

/// Those by which processes die, with the same numbers on Linux and on Apple's systems except where noted.
const NAMES: [(i32, &str); 13] = [
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (5, "SIGTRAP"),
    (6, "SIGABRT"),
    (if cfg!(target_vendor = "apple") { 10 } else { 7 }, "SIGBUS"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (11, "SIGSEGV"),
    (13, "SIGPIPE"),
    (15, "SIGTERM"),
    (24, "SIGXCPU"),
];

/// The name of a signal, or its number where it is an unusual one.
#[must_use]
pub fn signal_name(number: i32) -> String {
    NAMES.iter().find(|(n, _)| *n == number).map_or_else(|| format!("signal {number}"), |(_, name)| (*name).to_owned())
}
