//! Speeds of cells.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use anemone::{ModelOptions, PackageRunner, Runner};
use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::super::cell::{Cell, GENERATED};
use super::super::peer::Measured;
use super::super::process::memory;
use super::{start, tokens};

#[derive(Debug, Clone, clap::Args)]
pub(super) struct Cells {
    #[arg(value_delimiter = ',')]
    cells: Vec<String>,
    #[arg(long)]
    repeats: usize,
}

/// Times the cells in a process of its own.
pub(in crate::bench) fn run(package: &Path, cells: &[Cell], threads: usize, repeats: usize) -> Result<Measured> {
    let names: Vec<String> = cells.iter().map(Cell::to_string).collect();
    let mut work = vec!["cells".to_owned(), "--repeats".to_owned(), repeats.to_string()];
    work.extend((!names.is_empty()).then(|| names.join(",")));
    let (all, ran) = start(package, threads, &work)?;
    let mut speeds = BTreeMap::new();
    for (cell, samples) in all.as_object().context("an object of cells")? {
        let samples = samples.as_array().map(|s| s.iter().filter_map(Value::as_f64).collect()).unwrap_or_default();
        speeds.insert(cell.clone(), samples);
    }
    Ok(Measured { speeds, resident: ran.resident, foreign: ran.foreign })
}

/// Tokens a second of each sample.
pub(super) fn time(package: &Path, model: &ModelOptions, options: &Cells) -> Result<Value> {
    let begin = Instant::now();
    let runner = PackageRunner::open(package, model)?;
    let opened = begin.elapsed().as_secs_f64();
    let mut logits = vec![0.0; runner.vocabulary()];
    let mut all = serde_json::Map::new();
    let failed = |e: anemone::RunnerError| anyhow::anyhow!("{e}");
    let tokens = tokens(runner.context());
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
    all.insert("resident at the end".into(), json!([memory(std::process::id())[1]]));
    all.insert("opened (s)".into(), json!([opened]));
    all.insert("first token (s)".into(), json!([first]));
    Ok(Value::Object(all))
}
