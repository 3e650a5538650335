//! What was promised about speed and memory, one measurement a file: `cargo run --release -p xtask -- bench promises`.
//!
//! Each gives rows: what is ours first, then what it is measured against, as samples of processes that ran in turns. Medians
//! are compared.

mod busy;
mod depth;
mod fit;
mod form;
mod lut4;
mod memory;
mod openvino;
mod pair;
mod restart;
mod row;
mod start;
mod turn;

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::models::{self, Models};
use super::peer::Peer;
use super::place::Place;
use super::{machine, tell};
use row::Row;

/// What to measure.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Which ones, all if none: turn, restart, start, memory, lut4, depth, openvino, busy, form
    names: Vec<String>,
    /// Kinds of weights, where they are llama.cpp's
    #[arg(long, value_delimiter = ',', default_value = "Q4_0,Q8_0")]
    quants: Vec<String>,
    /// Numbers of threads
    #[arg(long, value_delimiter = ',', default_value = "2")]
    threads: Vec<usize>,
    /// Times that each program is started
    #[arg(long, default_value_t = 2)]
    rounds: usize,
    /// Leave llama.cpp with huge pages out
    #[arg(long)]
    no_tuned: bool,
    #[command(flatten)]
    place: Place,
    /// Where the figures go, beside those that are there of other measurements
    #[arg(long, value_name = "FILE", default_value = "docs/bench/promises.json")]
    output: PathBuf,
}

/// A measurement.
struct Promise {
    name: &'static str,
    about: &'static str,
    measure: fn(&Bench) -> Result<Vec<Row>>,
}

const ALL: &[Promise] = &[
    Promise { name: "turn", about: "a turn of a conversation", measure: turn::measure },
    Promise { name: "restart", about: "a conversation goes on after a restart", measure: restart::measure },
    Promise { name: "start", about: "from the start of a process to its first token", measure: start::measure },
    Promise { name: "memory", about: "resident memory", measure: memory::measure },
    Promise { name: "lut4", about: "palettes against integers of 4 bits", measure: lut4::measure },
    Promise { name: "depth", about: "the cost of history", measure: depth::measure },
    Promise { name: "openvino", about: "prompts against OpenVINO GenAI", measure: openvino::measure },
    Promise { name: "busy", about: "decoding beside a process that never sleeps", measure: busy::measure },
    Promise { name: "form", about: "packages of the form of Apple's article", measure: form::measure },
];

/// Positions for conversations on both sides.
const CONTEXT: usize = 4096;

/// What all measurements need.
struct Bench {
    options: Options,
    cache: PathBuf,
    peer: Peer,
}

impl Bench {
    /// The weights that llama.cpp has in this form, for both sides.
    fn models(&self, quant: &str) -> Result<Models> {
        models::make(&self.cache, &self.peer, quant)
    }

    /// The model in half floats, to convert.
    fn plain(&self) -> Result<PathBuf> {
        models::plain(&self.cache, &self.peer)
    }

    /// The ways that llama.cpp runs: as it comes, and with huge pages.
    fn ways(&self) -> &'static [(&'static str, bool)] {
        let all = &[("llama.cpp", false), ("llama.cpp with huge pages", true)];
        if self.options.no_tuned { &all[..1] } else { all }
    }

    /// All kinds of weights with all numbers of threads.
    fn each(&self, mut measure: impl FnMut(&str, &Models, usize) -> Result<()>) -> Result<()> {
        for quant in &self.options.quants {
            let models = self.models(quant)?;
            for &threads in &self.options.threads {
                measure(quant, &models, threads)?;
            }
        }
        Ok(())
    }
}

/// Measures, prints tables and writes the figures. Gives the promises that are not kept.
///
/// # Errors
/// If the peer cannot be had, or either side does not run.
pub fn run(options: &Options, out: &mut dyn Write) -> Result<Vec<String>> {
    let find = |name: &String| ALL.iter().find(|p| p.name == name).with_context(|| unknown(name));
    let chosen = options.names.iter().map(find).collect::<Result<Vec<_>>>()?;
    let chosen = if chosen.is_empty() { ALL.iter().collect() } else { chosen };
    let (cache, peer) = options.place.ready()?;
    let machine = machine::measure(&[])?.json();
    let bench = Bench { options: options.clone(), cache, peer };
    let mut broken = Vec::new();
    for promise in chosen {
        tell(promise.name);
        let rows = match (promise.measure)(&bench) {
            Ok(rows) => rows,
            // The others can still be measured.
            Err(error) => {
                broken.push(format!("{}: {error:#}", promise.name));
                continue;
            }
        };
        writeln!(out, "{}: {}", promise.name, promise.about)?;
        for row in &rows {
            write!(out, "{}", row.text())?;
            broken.extend(row.broken().map(|what| format!("{}: {what}", promise.name)));
        }
        keep(
            options,
            promise.name,
            &json!({
                "about": promise.about, "processor": machine["processor"], "llama.cpp": bench.peer.version,
                "rows": rows.iter().map(Row::json).collect::<Vec<_>>(),
            }),
        )?;
    }
    Ok(broken)
}

fn unknown(name: &str) -> String {
    let names: Vec<_> = ALL.iter().map(|p| p.name).collect();
    format!("{name:?}: expected some of {}", names.join(", "))
}

/// Puts the figures of one measurement in their place.
fn keep(options: &Options, name: &str, figures: &Value) -> Result<()> {
    let path = &options.output;
    let mut all = match std::fs::read_to_string(path) {
        Ok(text) => serde_json::from_str(&text).with_context(|| path.display().to_string())?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => json!({}),
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    };
    let Some(entries) = all.as_object_mut() else { bail!("{}: expected an object", path.display()) };
    entries.insert(name.to_owned(), figures.clone());
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, serde_json::to_string_pretty(&all)? + "\n").with_context(|| path.display().to_string())
}
