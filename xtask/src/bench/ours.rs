//! Our side: a process that opens a package, does one kind of work, and prints what it took as JSON.

pub(super) mod cells;
pub(super) mod resume;
pub(super) mod turn;

use std::path::{Path, PathBuf};
use std::process::Command;

use anemone::ModelOptions;
use anyhow::{Context, Result};
use serde_json::Value;

use super::process::{Ran, run};

/// What the process that is timed is told.
#[derive(Debug, Clone, clap::Args)]
pub struct Child {
    /// The converted folder.
    package: PathBuf,
    #[arg(long)]
    threads: usize,
    #[command(subcommand)]
    work: Work,
}

#[derive(Debug, Clone, clap::Subcommand)]
enum Work {
    /// Times cells.
    Cells(cells::Cells),
    /// Times turns after a history.
    Turn(turn::Turns),
    /// Reads tokens and keeps what was read in a file.
    Keep(resume::Kept),
    /// Goes on from that file.
    Resume(resume::Kept),
}

/// Runs such a process; `work` is its subcommand with its arguments.
pub(super) fn start(package: &Path, threads: usize, work: &[String]) -> Result<(Value, Ran)> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("bench-child").arg(package).args(["--threads", &threads.to_string()]).args(work);
    // What is wrong is told by the error itself.
    let ran = run(command.env("RUST_BACKTRACE", "0"))?;
    let value = serde_json::from_str(&ran.output).context("the timed process printed no JSON")?;
    Ok((value, ran))
}

/// Does the work of the process that is timed; gives what it prints.
///
/// # Errors
/// If the package cannot be opened or run.
pub fn child(options: &Child) -> Result<String> {
    // Packed weights are kept beside the models, as they are for who chats.
    let packed = options.package.parent().map(|folder| folder.join("packed"));
    let model = ModelOptions { threads: Some(options.threads), packed, ..ModelOptions::default() };
    let value = match &options.work {
        Work::Cells(cells) => cells::time(&options.package, &model, cells)?,
        Work::Turn(turns) => turn::time(&options.package, &model, turns)?,
        Work::Keep(kept) => resume::keep(&options.package, &model, kept)?,
        Work::Resume(kept) => resume::resume(&options.package, &model, kept)?,
    };
    Ok(value.to_string())
}

/// Tokens to read, the same ones for everybody.
pub(super) fn tokens(count: usize) -> Vec<u32> {
    (0..count as u32).map(|i| 100 + i * 7919 % 40_000).collect()
}
