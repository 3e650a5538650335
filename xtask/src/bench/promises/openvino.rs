//! Prompts against OpenVINO GenAI, which reads the same GGUF files.
//!
//! It is fetched from PyPI into an environment of its own. `openvino_prompts.py` beside this file runs it, with prompts that
//! differ each time, since it knows again what it has read before.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::super::cell::Cell;
use super::super::ours::cells;
use super::super::process::{Window, run};
use super::Bench;
use super::row::{Asked, Better, Row, Side};

const PACKAGE: &str = "openvino-genai";
const VERSION: &str = "2026.4.1.0";
const PROMPTS: [usize; 2] = [128, 512];
/// Samples of each start.
const REPEATS: usize = 4;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let python = install(&bench.cache)?;
    let mut rows = Vec::new();
    bench.each(|quant, models, threads| {
        let window = Window::open();
        let cells = PROMPTS.map(|n| Cell::prefill(n, 0));
        let mut sides = PROMPTS.map(|_| [Side::named("anemone"), Side::named("OpenVINO GenAI")]);
        let mut loaded = 0.0;
        for _ in 0..bench.options.rounds {
            let ours = cells::run(&models.package, &cells, threads, REPEATS)?;
            let theirs = prompts(&python, &models.gguf, threads)?;
            loaded = theirs.loaded;
            for ((cell, n), [own, their]) in cells.iter().zip(PROMPTS).zip(&mut sides) {
                own.samples.extend(ours.speeds.get(&cell.to_string()).into_iter().flatten());
                their.samples.extend(theirs.speeds.get(&n).into_iter().flatten());
            }
        }
        let foreign = window.foreign();
        rows.extend(cells.iter().zip(sides).map(|(cell, sides)| Row {
            what: format!("{cell}, {quant}, {threads} threads"),
            unit: "tokens/s",
            better: Better::More,
            sides: sides.into(),
            asked: Some(Asked::Times(1.2)),
            foreign,
            more: json!({"OpenVINO's version": VERSION, "its time to load (s)": loaded}),
        }));
        Ok(())
    })?;
    Ok(rows)
}

struct Measured {
    /// Tokens a second by the length of the prompt.
    speeds: BTreeMap<usize, Vec<f64>>,
    loaded: f64,
}

/// One start of theirs.
fn prompts(python: &Path, gguf: &Path, threads: usize) -> Result<Measured> {
    let script = crate::root().join("xtask/src/bench/promises/openvino_prompts.py");
    let mut command = Command::new(python);
    command.arg(script).arg(gguf).args([threads, REPEATS].map(|n| n.to_string())).args(PROMPTS.map(|n| n.to_string()));
    let ran = run(&mut command)?;
    // It may print warnings before.
    let line = ran.output.lines().next_back().unwrap_or_default();
    let all: Value = serde_json::from_str(line).context("openvino_prompts.py printed no JSON")?;
    let seconds =
        |n: usize| all["seconds"][n.to_string()].as_array().with_context(|| format!("no times of {n} tokens"));
    let speeds = PROMPTS.into_iter().map(|n| {
        let speeds = seconds(n)?.iter().filter_map(Value::as_f64).map(|s| n as f64 / s).collect();
        Ok((n, speeds))
    });
    Ok(Measured { speeds: speeds.collect::<Result<_>>()?, loaded: all["loaded"].as_f64().unwrap_or(0.0) })
}

/// Python with the package in it.
fn install(cache: &Path) -> Result<PathBuf> {
    let folder = cache.join(format!("{PACKAGE}-{VERSION}"));
    let python = folder.join("bin/python");
    let ready = folder.join("ready");
    if !ready.is_file() {
        super::tell("Fetching OpenVINO GenAI");
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        let mut pip = Command::new(&python);
        run(pip.args(["-m", "pip", "install", "--quiet", &format!("{PACKAGE}=={VERSION}"), "numpy"]))?;
        std::fs::write(&ready, "")?;
    }
    Ok(python)
}
