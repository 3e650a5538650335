//! How much memory processes take.

use std::process::Command;

/// Bytes of memory that a process holds just now; none where the system does not tell.
#[must_use]
pub fn resident(process: u32) -> Option<u64> {
    if cfg!(target_os = "linux") { status(process, "VmRSS:") } else { by_ps(process) }
}

/// The most bytes that this process has held so far, or what it holds just now where the system keeps no record.
#[must_use]
pub fn peak() -> Option<u64> {
    status(std::process::id(), "VmHWM:").or_else(|| resident(std::process::id()))
}

/// A line of Linux' record of a process, which counts in kB.
fn status(process: u32, field: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    kilobytes(status.lines().find_map(|line| line.strip_prefix(field))?)
}

fn kilobytes(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// What `ps` says, on systems that have it.
fn by_ps(process: u32) -> Option<u64> {
    let output = Command::new("ps").args(["-o", "rss=", "-p", &process.to_string()]).output().ok()?;
    kilobytes(&String::from_utf8(output.stdout).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn this_process_takes_memory() {
        let (now, most) = (resident(std::process::id()).unwrap(), peak().unwrap());
        assert!(now > 1 << 20 && most >= now / 2, "{now} {most}");
        assert_eq!(resident(u32::MAX), None);
    }

    #[test]
    fn counts_are_in_kilobytes() {
        assert_eq!(kilobytes("\t  123 kB"), Some(123 << 10));
        assert_eq!((kilobytes(""), kilobytes("kB"), kilobytes("18446744073709551615")), (None, None, None));
    }
}
