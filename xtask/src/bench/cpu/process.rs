//! Running a process to its end, with what it cost.

use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// How a process went.
#[derive(Debug, Clone)]
pub(super) struct Ran {
    pub(super) output: String,
    /// What it wrote to its standard error.
    pub(super) errors: String,
    /// The most memory that was resident, in bytes; 0 where the system does not tell.
    pub(super) resident: u64,
    /// The share of all processors' time that other processes took meanwhile.
    pub(super) foreign: f64,
}

/// Runs a command; an error if it fails.
pub(super) fn run(command: &mut Command) -> Result<Ran> {
    let name = format!("{:?}", command.get_program());
    let before = times();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {name}"))?;
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    let id = child.id();
    let (output, errors, resident) = thread::scope(|scope| {
        let output = scope.spawn(|| text(&mut out));
        let errors = scope.spawn(|| text(&mut err));
        let mut most = 0;
        while !output.is_finished() {
            most = most.max(high_water(id));
            thread::sleep(Duration::from_millis(20));
        }
        (output.join().unwrap_or_default(), errors.join().unwrap_or_default(), most)
    });
    let status = child.wait()?;
    if !status.success() {
        let from = errors.len().saturating_sub(2000);
        bail!("{name} failed ({status}): {}", errors.get(from..).unwrap_or(&errors));
    }
    let after = times();
    let all = (after.all - before.all).max(1) as f64;
    let own = (after.children - before.children) as f64;
    let foreign = ((after.busy - before.busy) as f64 - own).max(0.0) / all;
    Ok(Ran { output, errors, resident, foreign })
}

fn text(from: &mut Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        // What was read until it broke is what there is.
        let _broken = from.read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The most memory that the process had resident so far.
fn high_water(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) * 1024
}

/// Clock ticks since the machine started.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    all: i64,
    busy: i64,
    /// Of processes that this one started and waited for.
    children: i64,
}

fn times() -> Times {
    let numbers = |text: &str| -> Vec<i64> { text.split_whitespace().filter_map(|n| n.parse().ok()).collect() };
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let cpu = numbers(stat.lines().next().unwrap_or_default());
    let own = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name in parentheses, which may hold anything.
    let own = numbers(own.rsplit(')').next().unwrap_or_default());
    // user nice system idle iowait irq softirq steal
    let all: i64 = cpu.iter().take(8).sum();
    let idle: i64 = cpu.iter().skip(3).take(2).sum();
    // `numbers` leaves out the letter that stands before: ppid is 0, utime is 10.
    let children: i64 = own.iter().skip(12).take(2).sum();
    Times { all, busy: all - idle, children }
}
