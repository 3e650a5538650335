//! What a token costs as the conversation grows: single tokens, and calls of 64, after 0 to 8 000 tokens.
//!
//! Beside the table, it draws `depth.svg`, with a line through the points: its slope is the time for one more token of
//! history, of which the cache has so many bytes; together, how fast the cache is passed.

use std::path::Path;

use anemone_convert::Options;
use anemone_convert::quantize::find;
use anyhow::{Context, Result};
use plotters::style::RGBColor;
use serde_json::json;

use super::super::cell::Cell;
use super::super::machine;
use super::super::models::{Models, package};
use super::super::ours::cells;
use super::super::peer::median;
use super::super::plot::{Line, draw};
use super::super::process::Window;
use super::Bench;
use super::fit::fit;
use super::row::{Better, Row, Side};

/// As long as the model was made for.
const CONTEXT: usize = 8192;
const DEPTHS: [usize; 9] = [0, 512, 1024, 2048, 3072, 4096, 5120, 6656, 8128];
/// Tokens of a call.
const CALL: usize = 64;
const REPEATS: usize = 3;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for quant in &bench.options.quants {
        let gguf = bench.models(quant)?.gguf;
        let weights = find("keep").context("the converter can keep blocks")?;
        let options = Options { context: Some(CONTEXT), weights, ..Options::default() };
        let models = package(&gguf, &format!("smollm2-{quant}-{CONTEXT}"), options)?;
        for &threads in &bench.options.threads {
            let first = rows.is_empty();
            rows.extend(by_depth(bench, quant, &models, threads, first)?);
        }
    }
    Ok(rows)
}

/// The rows of single tokens and of calls; drawn as well, if wanted.
fn by_depth(bench: &Bench, quant: &str, models: &Models, threads: usize, drawn: bool) -> Result<Vec<Row>> {
    let read = machine::measure(&[threads])?.limits(threads).map_or(0.0, |limits| limits.read);
    let cells: Vec<Cell> = DEPTHS.into_iter().flat_map(|d| [Cell::prefill(CALL, d), Cell::decode(d)]).collect();
    let window = Window::open();
    let run = |_| cells::run(&models.package, &cells, threads, REPEATS);
    let rounds = (0..bench.options.rounds).map(run).collect::<Result<Vec<_>>>()?;
    let foreign = window.foreign();
    // Milliseconds for `tokens` at a cell, in the middle of all samples.
    let time = |cell: &Cell, tokens: f64| {
        let name = cell.to_string();
        let speeds = rounds.iter().filter_map(|round| round.speeds.get(&name)).flatten().copied();
        1e3 * tokens / median(&speeds.collect::<Vec<_>>())
    };
    // Single tokens are read on for a while: the middle of them counts.
    let decoded = DEPTHS.map(|d| ((d + super::super::cell::GENERATED / 2) as f64, time(&Cell::decode(d), 1.0)));
    let calls = DEPTHS.map(|d| ((d + CALL / 2) as f64, time(&Cell::prefill(CALL, d), CALL as f64)));
    let curves = [("a decoded token", decoded, 1.0), ("a call of 64 tokens", calls, CALL as f64)];
    if drawn {
        let folder = bench.options.output.parent().unwrap_or(Path::new("."));
        let title = format!("Time of a token by tokens of history: SmolLM2-135M, {quant}, {threads} threads");
        let colours = [RGBColor(30, 90, 180), RGBColor(200, 60, 40)];
        let each = curves.each_ref().map(|(_, points, tokens)| points.map(|(depth, ms)| (depth, ms / tokens)));
        let names = ["one by one", "in calls of 64"];
        let lines = names.into_iter().zip(colours).zip(&each);
        let lines: Vec<_> = lines.map(|((name, colour), points)| Line { name, colour, points }).collect();
        draw(&folder.join("depth.svg"), &title, ["tokens of history", "ms a token"], &lines)?;
    }
    let rows = curves.iter().map(|(name, points, _)| {
        let line = fit(points);
        Row {
            what: format!("{name} by history, {quant}, {threads} threads"),
            unit: "ms",
            better: Better::Less,
            sides: points
                .iter()
                .map(|&(depth, ms)| Side { name: format!("after {depth}"), samples: vec![ms] })
                .collect(),
            asked: None,
            foreign,
            more: json!({
                "at the beginning (ms)": line.start, "for 1 000 tokens more (ms)": 1e3 * line.slope,
                "farthest from the line (%)": 100.0 * line.farthest,
                "cache read (GB/s)": models.cache_bytes as f64 / (line.slope * 1e-3) / 1e9,
                "a plain read (GB/s)": read / 1e9,
            }),
        }
    });
    Ok(rows.collect())
}
