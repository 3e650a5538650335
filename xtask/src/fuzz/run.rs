//! The runner: rounds of mutated seeds in a child process, watched from outside.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::memory::peak_of;
use super::{TARGETS, Target, folder, mutate, regressions, seeds};

/// One input may take this long.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs every target (or the one named), each in a process of its own, for an equal part of the time. Returns complaints.
pub fn all(only: Option<&str>, seconds: u64, first: u64) -> Result<Vec<String>> {
    let targets: Vec<&Target> = TARGETS.iter().filter(|target| only.is_none_or(|name| name == target.name)).collect();
    if targets.is_empty() {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        bail!("no such target; there are {}", names.join(", "));
    }
    let weights: u32 = targets.iter().map(|target| target.weight).sum();
    let mut complaints = Vec::new();
    for target in targets {
        if let Some(complaint) = watch(target, Duration::from_secs(seconds) * target.weight / weights, first)? {
            complaints.push(complaint);
        }
    }
    Ok(complaints)
}

/// Runs one target in a child and judges how that ends.
fn watch(target: &Target, time: Duration, first: u64) -> Result<Option<String>> {
    let note = tempfile::NamedTempFile::new()?;
    let mut child = Command::new(std::env::current_exe()?)
        .args(["fuzz-child", target.name, &time.as_millis().to_string(), &first.to_string()])
        .arg(note.path())
        .stdin(Stdio::null())
        .spawn()
        .context("cannot start the child")?;
    let begin = Instant::now();
    let (mut last, mut since) = (None, Instant::now());
    let ended = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        let round = read_round(note.path());
        if round != last {
            (last, since) = (round, Instant::now());
        }
        if since.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            break None;
        }
        sleep(Duration::from_millis(50));
    };
    let round = read_round(note.path());
    let why = match ended {
        Some(status) if status.success() => {
            let rounds = round.map_or(0, |round| round - first + 1);
            let out = &mut std::io::stdout();
            writeln!(out, "{:12} {rounds:9} inputs in {:5.1} s", target.name, begin.elapsed().as_secs_f64())?;
            return Ok(None);
        }
        Some(status) => format!("ended with {status}"),
        None => format!("took longer than {} s", PATIENCE.as_secs()),
    };
    let Some(round) = round else { bail!("{}: {why} before its first input", target.name) };
    // The same input again, from nothing but its number.
    let input = mutate::input(target.name, target.shape, &seeds(target)?, round);
    let place = folder("artifacts").join(target.name);
    fs::create_dir_all(&place)?;
    let place = place.join(format!("round-{round}"));
    fs::write(&place, &input)?;
    Ok(Some(format!("{}: round {round} {why}; its {} bytes are in {}", target.name, input.len(), place.display())))
}

fn read_round(note: &Path) -> Option<u64> {
    let mut bytes = [0; 8];
    File::open(note).ok()?.read_exact(&mut bytes).ok()?;
    Some(u64::from_le_bytes(bytes))
}

/// The child: what failed once, then rounds until the time is over, noting the round before each. Fails by panic, crash, or
/// status.
pub fn child(name: &str, milliseconds: u64, first: u64, note: &Path) -> Result<()> {
    let target = TARGETS.iter().find(|target| target.name == name).context("no such target")?;
    for (name, input) in regressions(target)? {
        one(target, &input).map_err(|what| anyhow::anyhow!("the regression {name}: {what}"))?;
    }
    let seeds = seeds(target)?;
    for (name, seed) in &seeds {
        one(target, seed).map_err(|what| anyhow::anyhow!("the seed {name}: {what}"))?;
    }
    let mut note = File::options().write(true).open(note)?;
    let end = Instant::now() + Duration::from_millis(milliseconds);
    for round in first.. {
        if Instant::now() >= end {
            break;
        }
        let input = mutate::input(target.name, target.shape, &seeds, round);
        note.seek(SeekFrom::Start(0))?;
        note.write_all(&round.to_le_bytes())?;
        one(target, &input).map_err(|what| anyhow::anyhow!("round {round}: {what}"))?;
    }
    Ok(())
}

/// Runs one input. What went wrong, if anything did that does not end the process.
pub fn one(target: &Target, input: &[u8]) -> Result<(), String> {
    // Targets catch the panics of crates below that are known to panic; their messages are not ours to show.
    static LAST: Mutex<String> = Mutex::new(String::new());
    std::panic::set_hook(Box::new(|info| *LAST.lock().unwrap_or_else(|e| e.into_inner()) = info.to_string()));
    let (result, peak) = peak_of(|| catch_unwind(AssertUnwindSafe(|| (target.run)(input))));
    drop(std::panic::take_hook());
    if result.is_err() {
        return Err(LAST.lock().unwrap_or_else(|e| e.into_inner()).clone());
    }
    if peak > target.memory_bound(input) {
        return Err(format!(
            "{} bytes made it take {peak}, more than its bound of {}",
            input.len(),
            target.memory_bound(input)
        ));
    }
    Ok(())
}
