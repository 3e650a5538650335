//! Memory that is resident with 2 048 tokens in the cache.
//!
//! A session's process opens the model, whose packed weights an earlier one has kept, and reads 2 048 tokens. llama.cpp's has a context
//! of just as many, and of its two ways to do attention that which takes less.

use anyhow::Result;
use serde_json::json;

use super::super::ours::turn;
use super::super::peer::median;
use super::super::process::Window;
use super::Bench;
use super::row::{Asked, Better, Row, Side};

const TOKENS: usize = 2048;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    bench.each(|quant, models, threads| {
        let window = Window::open();
        // One that keeps the packed weights, if there are none yet.
        turn::run(&models.package, threads, [1, 1, 0])?;
        let mut ours = [Side::named("anemone"), Side::named("anemone")];
        let mut files = Vec::new();
        let mut theirs = bench.ways().iter().map(|&(name, _)| [name, name].map(Side::named)).collect::<Vec<_>>();
        for _ in 0..bench.options.rounds {
            let [end, file, most] = turn::run(&models.package, threads, [TOKENS - 1, 1, 0])?.resident;
            push(&mut ours, [end, most]);
            files.push(file / 1e6);
            for (&(_, tuned), sides) in bench.ways().iter().zip(&mut theirs) {
                let mut least = [f64::INFINITY; 2];
                for flash in ["0", "1"] {
                    let ran = bench.peer.read(&models.gguf, threads, TOKENS, tuned, flash)?;
                    least = [least[0].min(ran.resident_late as f64), least[1].min(ran.resident as f64)];
                }
                push(sides, least);
            }
        }
        let all = std::iter::once(ours).chain(theirs).collect::<Vec<_>>();
        for (index, what) in ["resident at the end", "most resident"].into_iter().enumerate() {
            // Four bits are what was asked about.
            let asked = (index == 0 && quant.starts_with("Q4")).then_some(Asked::AtMost(150.0));
            rows.push(Row {
                what: format!("{what} of {TOKENS} tokens, {quant}, {threads} threads"),
                unit: "MB",
                better: Better::Less,
                sides: all.iter().map(|sides| sides[index].clone()).collect(),
                asked,
                foreign: window.foreign(),
                more: json!({
                    "cache (MB)": (TOKENS as u64 * models.cache_bytes) as f64 / 1e6,
                    "weights (MB)": models.weight_bytes as f64 / 1e6, "of ours, mapped files (MB)": median(&files),
                }),
            });
        }
        Ok(())
    })?;
    Ok(rows)
}

fn push(sides: &mut [Side; 2], bytes: [f64; 2]) {
    for (side, bytes) in sides.iter_mut().zip(bytes) {
        side.samples.push(bytes / 1e6);
    }
}
