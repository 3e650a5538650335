//! A conversation that goes on after a restart, from a cache on the disk, against reading it again.
//!
//! A process keeps what it read and ends; another one opens the model and goes on. What is compared is the time from an open
//! model to the first token: opening it takes the same either way. The new turn is one token, since a longer one takes its own
//! time on both sides.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::super::ours::resume::{run_keep, run_resume};
use super::super::peer::median;
use super::super::process::Window;
use super::Bench;
use super::row::{Asked, Better, Row, Side};

const TOKENS: usize = 1100;
/// Restarts of each round.
const RESTARTS: usize = 3;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    bench.each(|quant, models, threads| {
        let window = Window::open();
        let folder = tempfile::tempdir_in(&bench.cache)?;
        let path = folder.path().join("conversation.snapshot");
        let (mut kept, mut again) = (Side::named("restored"), Side::named("read again"));
        let (mut opened, mut restored, mut bytes) = (Vec::new(), Vec::new(), 0.0);
        for _ in 0..bench.options.rounds {
            let (written, _) = run_keep(&models.package, threads, &path, TOKENS)?;
            again.samples.push(number(&written, "read_ms")?);
            bytes = number(&written, "bytes")?;
            for _ in 0..RESTARTS {
                let (resumed, _) = run_resume(&models.package, threads, &path, TOKENS)?;
                ensure!(resumed["last"] == written["last"], "the restored conversation went on in another way");
                restored.push(number(&resumed, "restored_ms")?);
                opened.push(number(&resumed, "opened_ms")?);
                kept.samples.push(number(&resumed, "restored_ms")? + number(&resumed, "first_token_ms")?);
            }
        }
        rows.push(Row {
            what: format!("first token after a restart with {TOKENS} kept ones, {quant}, {threads} threads"),
            unit: "ms",
            better: Better::Less,
            sides: vec![kept, again],
            asked: Some(Asked::Times(15.0)),
            foreign: window.foreign(),
            more: json!({
                "the restore alone (ms)": median(&restored), "opening the model (ms)": median(&opened),
                "file (MB)": bytes / 1e6,
            }),
        });
        Ok(())
    })?;
    Ok(rows)
}

fn number(value: &Value, key: &str) -> Result<f64> {
    value[key].as_f64().with_context(|| format!("the timed process told no {key}"))
}
