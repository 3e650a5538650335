//! What is left of the speed beside a process that never sleeps.

use anyhow::Result;
use serde_json::json;

use super::super::cell::Cell;
use super::super::ours::cells;
use super::super::peer::median;
use super::super::process::{Background, Window};
use super::Bench;
use super::row::{Asked, Better, Row, Side};

/// Samples of each start.
const REPEATS: usize = 3;
/// Tokens of a sample of llama.cpp's, which may be fifty times slower then.
const TOKENS: usize = 16;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    bench.each(|quant, models, threads| {
        let cell = Cell::decode(0);
        let ours = || -> Result<Vec<f64>> {
            let measured = cells::run(&models.package, &[cell], threads, REPEATS)?;
            Ok(measured.speeds.get(&cell.to_string()).cloned().unwrap_or_default())
        };
        rows.push(share(bench, &format!("anemone, {quant}, {threads} threads"), Some(Asked::Times(0.4)), &ours)?);
        for &(name, tuned) in bench.ways() {
            let theirs = || bench.peer.generate(&models.gguf, threads, TOKENS, REPEATS, tuned);
            rows.push(share(bench, &format!("{name}, {quant}, {threads} threads"), None, &theirs)?);
        }
        Ok(())
    })?;
    Ok(rows)
}

/// Samples beside a busy process, and alone, in turns.
fn share(bench: &Bench, what: &str, asked: Option<Asked>, samples: &dyn Fn() -> Result<Vec<f64>>) -> Result<Row> {
    let window = Window::open();
    let (mut beside, mut alone) = (Side::named("beside a busy process"), Side::named("alone"));
    for _ in 0..bench.options.rounds {
        alone.samples.extend(samples()?);
        let busy = Background::busy()?;
        beside.samples.extend(samples()?);
        drop(busy);
    }
    let share = median(&beside.samples) / median(&alone.samples).max(f64::MIN_POSITIVE);
    Ok(Row {
        what: what.to_owned(),
        unit: "tokens/s",
        better: Better::More,
        sides: vec![beside, alone],
        asked,
        foreign: window.foreign(),
        more: json!({"kept (%)": 100.0 * share}),
    })
}
