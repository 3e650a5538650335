//! Speed against llama.cpp on the same bits of weights: `cargo run --release -p xtask -- bench cpu`.
//!
//! Both run as processes of their own, one after the other, A B A B; what is compared are medians of samples of the same
//! window. The peer is llama.cpp built from its source on PyPI, once as it comes and once with huge pages, which it does not
//! ask for by itself. A window in which other processes took part of the processor is marked.

mod perplexity;
mod report;

use std::path::PathBuf;

use anyhow::Result;

use super::cell::Cell;
use super::ours::cells;
use super::place::Place;
use super::{machine, models, tell};

/// What to measure.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Kinds of weights: Q4_0, Q8_0, F16
    #[arg(long, value_delimiter = ',', default_value = "Q4_0,Q8_0,F16")]
    quants: Vec<String>,
    /// Numbers of threads
    #[arg(long, value_delimiter = ',', default_value = "2,1")]
    threads: Vec<usize>,
    /// What to time: decode, decode@N after N tokens, prefill:N, prefill:N@M after M tokens
    #[arg(long, value_delimiter = ',', default_value = "decode,decode@2048,prefill:128,prefill:512,prefill:128@2048")]
    cells: Vec<String>,
    /// Times that each program is started
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Samples of each cell and start
    #[arg(long, default_value_t = 3)]
    repeats: usize,
    /// Leave llama.cpp with huge pages out
    #[arg(long)]
    no_tuned: bool,
    /// Compare the perplexity of both on docs/bench/text.txt, so many pieces of 512 tokens; 0 for none
    #[arg(long, default_value_t = 4)]
    perplexity: usize,
    #[command(flatten)]
    place: Place,
    /// Where the figures go
    #[arg(long, value_name = "FILE", default_value = "docs/bench/cpu.json")]
    output: PathBuf,
}

/// Runs it all and writes the figures; gives the table to print.
///
/// # Errors
/// If the peer cannot be had, or either side does not run.
pub fn run(options: &Options) -> Result<String> {
    let timed = options.cells.iter().map(|c| Cell::parse(c)).collect::<Result<Vec<_>>>()?;
    let (cache, peer) = options.place.ready()?;
    let machine = machine::measure(&options.threads)?;
    let mut report = report::Report::new(machine, &peer);
    for quant in &options.quants {
        let models = models::make(&cache, &peer, quant)?;
        for &threads in &options.threads {
            let mut samples = report::Samples::default();
            for round in 0..options.rounds {
                tell(&format!("{quant}, {threads} threads, round {} of {}", round + 1, options.rounds));
                samples.ours.push(cells::run(&models.package, &timed, threads, options.repeats)?);
                samples.peer.push(peer.bench(&models.gguf, &timed, threads, options.repeats, false)?);
                if !options.no_tuned {
                    samples.tuned.push(peer.bench(&models.gguf, &timed, threads, options.repeats, true)?);
                }
            }
            report.add(quant, threads, &models, &timed, &samples);
        }
        if options.perplexity > 0 {
            tell(&format!("{quant}, perplexity"));
            report.perplexity(quant, perplexity::compare(&models, &peer, options.perplexity)?);
        }
        report.write(&options.output)?;
    }
    Ok(report.table())
}
