//! From the start of a process to the first byte of its answer.
//!
//! `anemone run` with packed weights that an earlier start has kept, against `llama-completion`, which does nothing else: no
//! warming up, no fitting to the machine, a context of 2 048, the same prompt with the template's words in it, one token.

use std::path::PathBuf;
use std::process::Command;

use anemone::{Message, Model, ModelOptions, Rendering};
use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::super::peer::median;
use super::super::process::{Window, run};
use super::Bench;
use super::row::{Asked, Better, Row, Side};

const QUESTION: &str = "Why is the sky blue?";
/// Starts of each round.
const STARTS: usize = 3;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let program = build()?;
    let mut rows = Vec::new();
    bench.each(|quant, models, threads| {
        let prompt = {
            let model = Model::open(&models.package, &ModelOptions { verify: false, ..ModelOptions::default() })?;
            model.template.render(&[Message::user(QUESTION)], &Rendering::default())?
        };
        let threads_text = threads.to_string();
        let ours = || -> Result<[f64; 2]> {
            let mut command = Command::new(&program);
            command.env("ANEMONE_HOME", bench.cache.join("home")).arg("run").arg("-m").arg(&models.package);
            first_byte(command.args(["--threads", &threads_text, "--temperature", "0", "--max-tokens", "1", QUESTION]))
        };
        let theirs = |tuned: bool, flash: &str| -> Result<[f64; 2]> {
            let mut command = bench.peer.command_as("llama-completion", tuned);
            command.arg("-m").arg(&models.gguf).args(["-t", &threads_text, "-c", "2048", "-n", "1", "-p", &prompt]);
            command.args(["--temp", "0", "-no-cnv", "--no-warmup", "--no-display-prompt", "-lv", "0"]);
            first_byte(command.args(["-fit", "off", "-fa", flash]))
        };
        // The first one packs.
        ours()?;
        let window = Window::open();
        let (mut own, mut end) = (Side::named("anemone"), Vec::new());
        let mut ways: Vec<_> = bench.ways().iter().map(|&(name, tuned)| (name, tuned, [vec![], vec![]])).collect();
        for _ in 0..bench.options.rounds * STARTS {
            let [first, whole] = ours()?;
            own.samples.push(first);
            end.push(whole);
            for (_, tuned, samples) in &mut ways {
                for (flash, samples) in ["off", "on"].into_iter().zip(samples) {
                    samples.push(theirs(*tuned, flash)?[0]);
                }
            }
        }
        let sides = ways.into_iter().map(|(name, _, [without, with])| {
            let samples = if median(&with) < median(&without) { with } else { without };
            Side { name: name.into(), samples }
        });
        rows.push(Row {
            what: format!("start to first token, {quant}, {threads} threads"),
            unit: "ms",
            better: Better::Less,
            sides: std::iter::once(own).chain(sides).collect(),
            asked: Some(Asked::Times(2.0)),
            foreign: window.foreign(),
            more: json!({"until our process ended (ms)": median(&end)}),
        });
        Ok(())
    })?;
    Ok(rows)
}

/// Milliseconds to the first byte that a process prints, and to its end.
fn first_byte(command: &mut Command) -> Result<[f64; 2]> {
    let ran = run(command)?;
    ensure!(!ran.output.trim().is_empty(), "{:?} printed no token", command.get_program());
    let first = ran.first_byte.context("it printed nothing")?;
    Ok([first, ran.wall].map(|time| time.as_secs_f64() * 1e3))
}

/// Anemone's own program, as this source makes it.
fn build() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--release", "--package", "anemone-cli"]).current_dir(crate::root());
    run(&mut command)?;
    let folder = std::env::current_exe()?;
    let program = folder.with_file_name(format!("anemone{}", std::env::consts::EXE_SUFFIX));
    ensure!(program.is_file(), "{}: there is no such program; run this with --release", program.display());
    Ok(program)
}
