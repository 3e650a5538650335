//! Speed against llama.cpp on the same bits of weights: `cargo run --release -p xtask -- bench cpu`.
//!
//! Both run as processes of their own, one after the other, A B A B; what is compared are medians of samples of the same
//! window. The peer is llama.cpp built from its source on PyPI, once as it comes and once with huge pages, which it does not
//! ask for by itself. A window in which other processes took part of the processor is marked.

mod machine;
mod models;
mod ours;
mod peer;
mod perplexity;
mod process;
mod report;

use std::path::PathBuf;

use anyhow::{Result, bail};

pub use ours::{Child, child};

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
    /// Where llama.cpp and the models are kept [default: a folder in Anemone's own]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// A folder with llama-bench, llama-quantize and llama-perplexity, instead of building them
    #[arg(long, value_name = "DIR")]
    peer: Option<PathBuf>,
    /// Where the figures go
    #[arg(long, value_name = "FILE", default_value = "docs/bench/cpu.json")]
    output: PathBuf,
}

/// What one cell times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// Tokens of a prompt read at once; none to generate one by one.
    pub prompt: Option<usize>,
    /// Tokens that came before.
    pub depth: usize,
}

/// Tokens that are generated for a sample.
pub const GENERATED: usize = 64;

impl Cell {
    /// `decode`, `decode@2048`, `prefill:128`, `prefill:128@2048`.
    ///
    /// # Errors
    /// If it is none of these.
    pub fn parse(text: &str) -> Result<Self> {
        let (what, depth) = text.split_once('@').map_or((text, Ok(0)), |(what, depth)| (what, depth.parse()));
        let prompt = match what.split_once(':') {
            None if what == "decode" => None,
            Some(("prefill", n)) => Some(n.parse()?),
            _ => bail!("{text:?}: expected decode, decode@N, prefill:N or prefill:N@M"),
        };
        Ok(Self { prompt, depth: depth? })
    }

    /// The positions that it needs.
    #[must_use]
    pub fn end(&self) -> usize {
        self.depth + self.prompt.unwrap_or(GENERATED)
    }
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.prompt {
            None => f.write_str("decode")?,
            Some(n) => write!(f, "prefill:{n}")?,
        }
        if self.depth > 0 { write!(f, "@{}", self.depth) } else { Ok(()) }
    }
}

/// Runs it all and writes the figures; gives the table to print.
///
/// # Errors
/// If the peer cannot be had, or either side does not run.
pub fn run(options: &Options) -> Result<String> {
    let cells = options.cells.iter().map(|c| Cell::parse(c)).collect::<Result<Vec<_>>>()?;
    let cache = match &options.cache {
        Some(cache) => cache.clone(),
        None => anemone_cli::home::Home::locate()?.root().join("bench"),
    };
    let mut peer = match &options.peer {
        Some(folder) => peer::Peer::at(folder)?,
        None => peer::Peer::build(&cache)?,
    };
    let machine = machine::measure(&options.threads)?;
    peer.settle(&models::plain(&cache, &peer)?)?;
    let mut report = report::Report::new(machine, &peer);
    for quant in &options.quants {
        let models = models::make(&cache, &peer, quant)?;
        for &threads in &options.threads {
            let mut samples = report::Samples::default();
            for round in 0..options.rounds {
                eprintln_progress(&format!("{quant}, {threads} threads, round {} of {}", round + 1, options.rounds));
                samples.ours.push(ours::run(&models.package, &cells, threads, options.repeats)?);
                samples.peer.push(peer.bench(&models.gguf, &cells, threads, options.repeats, false)?);
                if !options.no_tuned {
                    samples.tuned.push(peer.bench(&models.gguf, &cells, threads, options.repeats, true)?);
                }
            }
            report.add(quant, threads, &models, &cells, &samples);
        }
        if options.perplexity > 0 {
            eprintln_progress(&format!("{quant}, perplexity"));
            report.perplexity(quant, perplexity::compare(&models, &peer, options.perplexity)?);
        }
        report.write(&options.output)?;
    }
    Ok(report.table())
}

#[allow(clippy::print_stderr, reason = "a chore tells how far it is")]
fn eprintln_progress(text: &str) {
    eprintln!("{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_read_as_they_are_written() {
        for text in ["decode", "decode@2048", "prefill:128", "prefill:512@2048"] {
            assert_eq!(Cell::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Cell::parse("decode@2048").unwrap().end(), 2112);
        for text in ["", "decode:3", "prefill", "prefill:x", "decode@"] {
            assert!(Cell::parse(text).is_err(), "{text}");
        }
    }
}
