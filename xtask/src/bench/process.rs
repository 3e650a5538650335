//! Processes that are measured: run to their end, with what they cost, or kept running meanwhile.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Above this share of foreign work a window is no quiet one.
pub(super) const QUIET: f64 = 0.08;

/// How a process went.
#[derive(Debug, Clone, Default)]
pub(super) struct Ran {
    pub(super) output: String,
    /// What it wrote to its standard error.
    pub(super) errors: String,
    /// The most memory that was resident, in bytes; 0 where the system does not tell.
    pub(super) resident: u64,
    /// What was resident in the last quarter of its time, the median.
    pub(super) resident_late: u64,
    /// From its start to the first byte that it printed.
    pub(super) first_byte: Option<Duration>,
    /// From its start to the end of what it printed.
    pub(super) wall: Duration,
    /// The share of all processors' time that other processes took meanwhile.
    pub(super) foreign: f64,
}

/// How often memory is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Runs a command; an error if it fails.
pub(super) fn run(command: &mut Command) -> Result<Ran> {
    let name = format!("{:?}", command.get_program());
    let window = Window::open();
    let begin = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {name}"))?;
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    let id = child.id();
    let mut looks = Vec::new();
    let (output, errors, resident) = thread::scope(|scope| {
        let output = scope.spawn(|| (timed(&mut out, begin), begin.elapsed()));
        let errors = scope.spawn(|| timed(&mut err, begin).0);
        let mut most = 0;
        while !output.is_finished() {
            let [peak, now, _] = memory(id);
            most = most.max(peak);
            looks.extend((now > 0).then_some(now));
            thread::sleep(LOOK);
        }
        (output.join().unwrap_or_default(), errors.join().unwrap_or_default(), most)
    });
    let status = child.wait()?;
    if !status.success() {
        let from = errors.len().saturating_sub(2000);
        bail!("{name} failed ({status}): {}", errors.get(from..).unwrap_or(&errors));
    }
    let mut late = looks.split_off(looks.len() * 3 / 4);
    late.sort_unstable();
    let resident_late = late.get(late.len() / 2).copied().unwrap_or(0);
    let ((output, first_byte), wall) = output;
    Ok(Ran { output, errors, resident, resident_late, first_byte, wall, foreign: window.foreign() })
}

/// All that comes, and when the first of it came.
fn timed(from: &mut Option<impl Read>, begin: Instant) -> (String, Option<Duration>) {
    let (mut bytes, mut first) = (vec![0; 1], None);
    let Some(from) = from else { return (String::new(), None) };
    match from.read(&mut bytes) {
        Ok(1) => first = Some(begin.elapsed()),
        _ => bytes.clear(),
    }
    // What was read until it broke is what there is.
    let _broken = from.read_to_end(&mut bytes);
    (String::from_utf8_lossy(&bytes).into_owned(), first)
}

/// The most memory that the process had resident so far, what it has now, and how much of that is files.
pub(super) fn memory(id: u32) -> [u64; 3] {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    ["VmHWM:", "VmRSS:", "RssFile:"].map(|key| {
        let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) * 1024
    })
}

/// A process that runs until this is dropped.
#[derive(Debug)]
pub(super) struct Background(Child);

impl Background {
    /// Starts it, with nothing to read and nobody to listen.
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        let name = format!("{:?}", command.get_program());
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self(quiet.spawn().with_context(|| format!("cannot run {name}"))?))
    }

    /// A process that never sleeps.
    pub(super) fn busy() -> Result<Self> {
        Self::start(Command::new("sh").args(["-c", "while :; do :; done"]))
    }

    /// An error if it ended by itself.
    pub(super) fn check(&mut self) -> Result<()> {
        match self.0.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("it ended early ({status})"),
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
}

/// A time in which all processes that are started here also end.
#[derive(Debug)]
pub(super) struct Window(Times);

impl Window {
    pub(super) fn open() -> Self {
        Self(times())
    }

    /// The share of all processors' time that others have taken since it was opened.
    pub(super) fn foreign(&self) -> f64 {
        let after = times();
        let all = (after.all - self.0.all).max(1) as f64;
        ((after.busy - self.0.busy) as f64 - (after.own - self.0.own) as f64).max(0.0) / all
    }
}

/// Clock ticks since the machine started.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    all: i64,
    busy: i64,
    /// Of this process and those that it started and waited for.
    own: i64,
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
    // `numbers` leaves out the letter that stands before: ppid is 0, utime is 10, then stime and those of children.
    let own: i64 = own.iter().skip(10).take(4).sum();
    Times { all, busy: all - idle, own }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_to_its_end() {
        let ran = run(Command::new("sh").args(["-c", "sleep 0.1; printf abc; printf x >&2"])).unwrap();
        assert_eq!((ran.output.as_str(), ran.errors.as_str()), ("abc", "x"));
        assert!(ran.first_byte.unwrap() >= Duration::from_millis(100));
        let silent = run(&mut Command::new("true")).unwrap();
        assert_eq!((silent.output.as_str(), silent.first_byte), ("", None));
        assert!(run(&mut Command::new("false")).is_err());
    }

    #[test]
    fn a_process_in_the_background_ends_with_its_owner() {
        let mut busy = Background::busy().unwrap();
        let id = busy.0.id();
        busy.check().unwrap();
        drop(busy);
        assert_eq!(memory(id), [0, 0, 0]);
    }
}
