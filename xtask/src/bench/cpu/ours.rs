//! Our side: a process that opens a package and times cells.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anemone::{ModelOptions, PackageRunner, Runner};
use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::peer::Measured;
use super::process::run as run_process;
use super::{Cell, GENERATED};

/// What the process that is timed is told.
#[derive(Debug, Clone, clap::Args)]
pub struct Child {
    /// The converted folder.
    package: PathBuf,
    #[arg(long)]
    threads: usize,
    #[arg(long, value_delimiter = ',')]
    cells: Vec<String>,
    #[arg(long)]
    repeats: usize,
}

pub(super) fn run(package: &Path, cells: &[Cell], threads: usize, repeats: usize) -> Result<Measured> {
    let names: Vec<String> = cells.iter().map(Cell::to_string).collect();
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("bench-child").arg(package).args(["--threads", &threads.to_string()]);
    command.args(["--repeats", &repeats.to_string(), "--cells", &names.join(",")]);
    let ran = run_process(&mut command)?;
    let all: Value = serde_json::from_str(&ran.output).context("the timed process printed no JSON")?;
    let mut speeds = BTreeMap::new();
    for (cell, samples) in all.as_object().context("an object of cells")? {
        let samples = samples.as_array().map(|s| s.iter().filter_map(Value::as_f64).collect()).unwrap_or_default();
        speeds.insert(cell.clone(), samples);
    }
    Ok(Measured { speeds, resident: ran.resident, foreign: ran.foreign })
}

/// Times the cells; tokens a second of each sample, as JSON.
///
/// # Errors
/// If the package cannot be opened or run.
pub fn child(options: &Child) -> Result<String> {
    let threads = Some(options.threads);
    // Packed weights are kept beside the models, as they are for who chats.
    let packed = options.package.parent().map(|folder| folder.join("packed"));
    let begin = Instant::now();
    let runner = PackageRunner::open(&options.package, &ModelOptions { threads, packed, ..ModelOptions::default() })?;
    let opened = begin.elapsed().as_secs_f64();
    let mut logits = vec![0.0; runner.vocabulary()];
    let mut all = serde_json::Map::new();
    let failed = |e: anemone::RunnerError| anyhow::anyhow!("{e}");
    let tokens: Vec<u32> = (0..runner.context() as u32).map(|i| 100 + i * 7919 % 40_000).collect();
    let mut state = runner.new_state().map_err(failed)?;
    runner.feed(&mut state, 0, &tokens[..1], &mut logits).map_err(failed)?;
    let first = begin.elapsed().as_secs_f64();
    let mut filled = 0;
    for name in &options.cells {
        let cell = Cell::parse(name)?;
        anyhow::ensure!(cell.end() <= runner.context(), "{name} needs more than {} positions", runner.context());
        if filled < cell.depth {
            runner.feed(&mut state, filled, &tokens[filled..cell.depth], &mut logits).map_err(failed)?;
        }
        let mut once = || -> Result<f64> {
            let begin = Instant::now();
            match cell.prompt {
                Some(n) => {
                    let prompt = &tokens[cell.depth..cell.depth + n];
                    runner.feed(&mut state, cell.depth, prompt, &mut logits).map_err(failed)?;
                    Ok(n as f64 / begin.elapsed().as_secs_f64())
                }
                None => {
                    for at in cell.depth..cell.depth + GENERATED {
                        runner.feed(&mut state, at, &tokens[at..=at], &mut logits).map_err(failed)?;
                    }
                    Ok(GENERATED as f64 / begin.elapsed().as_secs_f64())
                }
            }
        };
        // Once to warm up, as the other side does.
        once()?;
        let samples = (0..options.repeats).map(|_| once()).collect::<Result<Vec<_>>>()?;
        all.insert(name.clone(), json!(samples));
        filled = filled.max(cell.end());
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let now = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    let now = now.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or(0.0) * 1024.0;
    all.insert("resident at the end".into(), json!([now]));
    all.insert("opened (s)".into(), json!([opened]));
    all.insert("first token (s)".into(), json!([first]));
    Ok(Value::Object(all).to_string())
}
