//! The limit on the size of files (`ulimit -f`).

#![allow(unsafe_code, reason = "the C library is told which signal to ignore")]

/// Has a write beyond the limit fail like any other, with an error that names the file: by default the system ends the
/// process without a word.
pub(crate) fn outlive() {
    #[cfg(unix)]
    {
        // SAFETY: ignoring a signal runs no code of ours, and SIGXFSZ is one that may be ignored.
        let _before = unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    }
}
