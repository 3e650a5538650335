//! Two packages of ours, each against the other, in turns.

use anyhow::Result;
use serde_json::Value;

use super::super::cell::Cell;
use super::super::models::Models;
use super::super::ours::cells;
use super::super::process::Window;
use super::Bench;
use super::row::{Asked, Better, Row, Side};

/// Samples of each cell and start.
const REPEATS: usize = 4;

/// One row for each cell: the speed of the first package, of which `asked` times the second one's is asked.
pub(super) fn compare(
    bench: &Bench,
    what: &str,
    packages: [(&str, &Models); 2],
    cells: &[Cell],
    asked: f64,
) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for &threads in &bench.options.threads {
        let window = Window::open();
        let mut rounds = [Vec::new(), Vec::new()];
        for _ in 0..bench.options.rounds {
            for ((_, models), rounds) in packages.iter().zip(&mut rounds) {
                rounds.push(cells::run(&models.package, cells, threads, REPEATS)?);
            }
        }
        let foreign = window.foreign();
        for cell in cells {
            let name = cell.to_string();
            let sides = packages.iter().zip(&rounds).map(|((side, _), rounds)| {
                let samples = rounds.iter().filter_map(|round| round.speeds.get(&name)).flatten().copied();
                Side { name: (*side).to_owned(), samples: samples.collect() }
            });
            rows.push(Row {
                what: format!("{name}, {what}, {threads} threads"),
                unit: "tokens/s",
                better: Better::More,
                sides: sides.collect(),
                asked: Some(Asked::Times(asked)),
                foreign,
                more: Value::Null,
            });
        }
    }
    Ok(rows)
}
