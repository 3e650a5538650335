//! A turn of a conversation: the time to its first token, against llama.cpp's server, which keeps the prompt as well.
//!
//! The same tokens on both sides; every turn begins with the same history and then differs. Theirs is what the server says that
//! the prompt took, without the way there and back.

use anyhow::{Result, ensure};
use serde_json::json;

use super::super::ours::turn::{prompts, run};
use super::super::peer::median;
use super::super::process::Window;
use super::row::{Asked, Better, Row, Side};
use super::{Bench, CONTEXT};

const HISTORY: usize = 1100;
const NEW: usize = 60;
/// Turns of each start.
const REPEATS: usize = 5;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    bench.each(|quant, models, threads| {
        let window = Window::open();
        let mut ours = Side::named("anemone");
        // Of each way to run: without flash attention and with it.
        let mut theirs = bench.ways().iter().map(|_| [Vec::new(), Vec::new()]).collect::<Vec<_>>();
        let mut walls = Vec::new();
        for _ in 0..bench.options.rounds {
            ours.samples.extend(run(&models.package, threads, [HISTORY, NEW, REPEATS])?.first_token);
            for (&(_, tuned), samples) in bench.ways().iter().zip(&mut theirs) {
                for (flash, samples) in [false, true].into_iter().zip(samples) {
                    let server = bench.peer.server(&models.gguf, threads, CONTEXT, tuned, flash)?;
                    let prompts = prompts(HISTORY, NEW, REPEATS);
                    server.answer(&prompts[0][..HISTORY])?;
                    server.answer(&prompts[0])?;
                    for prompt in &prompts[1..] {
                        let answered = server.answer(prompt)?;
                        let (read, known) = (answered.read, answered.known);
                        ensure!(known >= HISTORY as u64, "the server kept {known} tokens and read {read}");
                        samples.push(answered.prompt);
                        walls.push(answered.wall - answered.prompt);
                    }
                }
            }
        }
        let sides = bench.ways().iter().zip(theirs).map(|(&(name, _), [without, with])| {
            let (samples, how) = if median(&with) < median(&without) { (with, "fa on") } else { (without, "fa off") };
            Side { name: format!("{name}, {how}"), samples }
        });
        rows.push(Row {
            what: format!("time to the first token of {NEW} new ones after {HISTORY}, {quant}, {threads} threads"),
            unit: "ms",
            better: Better::Less,
            sides: std::iter::once(ours).chain(sides).collect(),
            asked: Some(Asked::Times(3.0)),
            foreign: window.foreign(),
            more: json!({"what a request to the server takes on top (ms)": median(&walls)}),
        });
        Ok(())
    })?;
    Ok(rows)
}
