//! A process of our own making that may hang, eat all memory, or die: it is watched, and ended when it goes too far.

mod signal;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::memory;

pub use signal::signal_name;

/// How far a process may go.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long it may go without a word.
    pub silence: Duration,
    /// How long it may take in all.
    pub time: Duration,
    /// How many bytes of memory it may hold.
    pub memory: u64,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "end")]
pub enum End {
    /// By itself, with a code.
    Exited {
        /// The code; 0 if all went well.
        code: i32,
    },
    /// By a signal that we did not send.
    Signalled {
        /// Its number.
        number: i32,
        /// Its name, such as `SIGKILL`.
        name: String,
    },
    /// We ended it: it took too long.
    TooLong {
        /// Whether it was silent for too long, or too slow in all.
        silent: bool,
        /// The limit, in seconds.
        seconds: u64,
    },
    /// We ended it: it held too much memory.
    TooLarge {
        /// Bytes that it held.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
}

/// What became of a process.
#[derive(Clone, Debug, Serialize)]
pub struct Watched {
    /// How it ended.
    #[serde(flatten)]
    pub end: End,
    /// The most memory that it was seen to hold, in bytes.
    pub peak_memory: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// The last of what it wrote to standard error.
    pub stderr: String,
}

/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(25);
/// Of standard error so many bytes are kept, the last ones.
const KEPT: usize = 64 << 10;
/// Lines of standard output longer than this are cut.
const LINE: u64 = 1 << 20;
/// Pipes that somebody else still holds open are not waited for longer.
const DRAIN: Duration = Duration::from_secs(2);

/// Runs a command to its end, or to ours. `line` is told every line of its standard output.
///
/// # Errors
/// If it cannot be started or waited for.
pub fn watch(command: &mut Command, limits: &Limits, line: &mut dyn FnMut(&str)) -> std::io::Result<Watched> {
    let begin = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let lines = lines_of(child.stdout.take());
    let errors = tail_of(child.stderr.take());
    let mut last_word = Instant::now();
    let mut peak = 0;
    let end = loop {
        match lines.recv_timeout(LOOK) {
            Ok(text) => {
                last_word = Instant::now();
                line(&text);
            }
            Err(RecvTimeoutError::Timeout) => {}
            // Its standard output is closed; it may go on.
            Err(RecvTimeoutError::Disconnected) => thread::sleep(LOOK),
        }
        if let Some(status) = child.try_wait()? {
            break ended(status);
        }
        peak = peak.max(memory::resident(child.id()).unwrap_or(0));
        let (silent, slow) = (last_word.elapsed() > limits.silence, begin.elapsed() > limits.time);
        if peak > limits.memory {
            stop(&mut child)?;
            break End::TooLarge { bytes: peak, limit: limits.memory };
        }
        if silent || slow {
            stop(&mut child)?;
            let limit = if slow { limits.time } else { limits.silence };
            break End::TooLong { silent: !slow, seconds: limit.as_secs() };
        }
    };
    let until = Instant::now() + DRAIN;
    while let Ok(text) = lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
        line(&text);
    }
    let stderr = errors.recv_timeout(until.saturating_duration_since(Instant::now())).unwrap_or_default();
    Ok(Watched { end, peak_memory: peak, seconds: begin.elapsed().as_secs_f64(), stderr })
}

fn stop(child: &mut Child) -> std::io::Result<()> {
    // It may be gone already.
    drop(child.kill());
    child.wait().map(drop)
}

fn ended(status: ExitStatus) -> End {
    #[cfg(unix)]
    if let Some(number) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return End::Signalled { number, name: signal_name(number) };
    }
    End::Exited { code: status.code().unwrap_or(-1) }
}

fn lines_of(stream: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    if let Some(stream) = stream {
        thread::spawn(move || send_lines(BufReader::new(stream), &sender));
    }
    receiver
}

fn send_lines(mut stream: impl BufRead, to: &Sender<String>) {
    loop {
        let mut bytes = Vec::new();
        match stream.by_ref().take(LINE).read_until(b'\n', &mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let text = String::from_utf8_lossy(&bytes).trim_end().to_owned();
                if to.send(text).is_err() {
                    return;
                }
            }
        }
    }
}

/// The last of a stream, once it has ended.
fn tail_of(stream: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    if let Some(mut stream) = stream {
        thread::spawn(move || {
            let (mut kept, mut chunk) = (Vec::new(), [0; 4096]);
            while let Ok(n @ 1..) = stream.read(&mut chunk) {
                kept.extend_from_slice(&chunk[..n]);
                if kept.len() > 2 * KEPT {
                    kept.drain(..kept.len() - KEPT);
                }
            }
            let last = &kept[kept.len().saturating_sub(KEPT)..];
            drop(sender.send(String::from_utf8_lossy(last).trim().to_owned()));
        });
    }
    receiver
}

#[cfg(all(test, unix))]
mod tests;
