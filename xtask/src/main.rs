//! `cargo run -p xtask -- CHORE`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Counted, for `fuzz`.
#[global_allocator]
static ALLOCATOR: xtask::fuzz::memory::Counting = xtask::fuzz::memory::Counting;

/// Chores of the Anemone workspace.
#[derive(Parser)]
#[command(name = "xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Check the tree: crate order, unsafe code, file lengths, words that do not land.
    Tidy,
    /// Check the licences of all dependencies against deny.toml.
    Licences,
    /// Compare a converted model with the reference of its weights.
    Parity {
        /// The folder of the converted model.
        model: std::path::PathBuf,
        /// The reference: safetensors with prompts, best tokens, margins and logits.
        #[arg(long)]
        reference: std::path::PathBuf,
        /// The least share of clear positions whose best token agrees.
        #[arg(long, default_value_t = 1.0)]
        agree: f64,
        /// The least share of all positions whose best token agrees.
        #[arg(long, default_value_t = 0.0)]
        agree_all: f64,
        /// The largest mean Kullback-Leibler divergence, in nats.
        #[arg(long, default_value_t = 1e-3)]
        kl: f64,
        /// How the tokens before a position are read.
        #[arg(long, value_enum, default_value = "single")]
        reading: xtask::parity::Reading,
        /// Threads.
        #[arg(long, default_value_t = 2)]
        threads: usize,
    },
    /// Compare the arithmetic of a model as it comes with exact arithmetic, on the same prompts.
    Drift {
        /// The folder of the converted model.
        model: std::path::PathBuf,
        /// The reference: safetensors with prompts.
        #[arg(long)]
        reference: std::path::PathBuf,
        /// How the tokens before a position are read.
        #[arg(long, value_enum, default_value = "prompts")]
        reading: xtask::parity::Reading,
        /// The least share of positions whose best token is the same.
        #[arg(long, default_value_t = 0.99)]
        agree: f64,
        /// The largest mean Kullback-Leibler divergence, in nats.
        #[arg(long, default_value_t = 2e-3)]
        kl: f64,
        /// Threads.
        #[arg(long, default_value_t = 2)]
        threads: usize,
    },
    /// Run mutated inputs through everything that reads bytes from outside; the same ones each time.
    Fuzz {
        /// How long, all targets together.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// Only this target.
        #[arg(long)]
        target: Option<String>,
        /// The number of the first round: other numbers, other inputs.
        #[arg(long, default_value_t = 0)]
        first: u64,
    },
    /// The process in which `fuzz` runs one target.
    #[command(hide = true)]
    FuzzChild { target: String, milliseconds: u64, first: u64, note: PathBuf },
    /// Write the seeds to fuzz/corpus, for `cargo fuzz run`.
    FuzzSeeds,
    /// Write docs/ops.md from the operations.
    Ops,
    /// Write docs/lint.md from the rules of the linter.
    Lint,
    /// Write the tiny chat model of goldens/tiny again.
    Fixtures {
        /// Only say what is different from what is there.
        #[arg(long)]
        check: bool,
        /// Only look for another seed, among so many after the present one.
        #[arg(long, value_name = "SEEDS")]
        search: Option<u64>,
    },
    /// Have coremltools load a package, check every operation of it and compare the weights.
    Coremltools {
        /// The package, or the folder of a converted model.
        package: std::path::PathBuf,
        /// The checkpoint that it was made from, a Hugging Face folder: weights must be the same.
        #[arg(long)]
        checkpoint: Option<std::path::PathBuf>,
    },
    /// Convert and verify a model in every way, and write what came out into docs/quality.md.
    Quality(xtask::quality::Options),
    /// Measure what users feel, on this machine.
    #[command(subcommand)]
    Bench(Bench),
    /// The process that `bench` times.
    #[command(hide = true)]
    BenchChild(xtask::bench::Child),
    /// Write a checkpoint of the shape of Llama 3.2 1B whose weights are drawn, 2.5 GB, to measure conversions with.
    BigCheckpoint {
        /// The folder to make.
        folder: PathBuf,
    },
    /// Fetch the GGUF file that the references were made from, and print its path.
    Model,
}

#[derive(Subcommand)]
enum Bench {
    /// The time to the first token by turn, beside reading the conversation again; a restore beside reading.
    Session {
        /// The folder of a converted model with a context of 4096 or more.
        model: PathBuf,
        /// Where session.json and the drawings go [default: docs/bench]
        #[arg(short, long)]
        output: Option<PathBuf>,
        /// Threads [default: all]
        #[arg(long)]
        threads: Option<usize>,
        /// Measure reading everything again in each so many turns only, and in the last.
        #[arg(long, default_value_t = 1)]
        every: usize,
        /// Turns of the long conversation.
        #[arg(long, default_value_t = 100)]
        turns: usize,
    },
    /// On the processor, against llama.cpp, with the same bits of weights
    Cpu(xtask::bench::cpu::Options),
    /// What was promised about speed and memory beyond that table, one after the other
    Promises(xtask::bench::promises::Options),
}

fn main() -> Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    let errors = match Arguments::parse().chore {
        Chore::Tidy => {
            let report = xtask::tidy::check()?;
            report.warnings.iter().try_for_each(|warning| writeln!(out, "warning: {warning}"))?;
            report.errors
        }
        Chore::Licences => xtask::licences::check()?,
        Chore::Parity { model, reference, agree, agree_all, kl, reading, threads } => {
            let start = std::time::Instant::now();
            let report = xtask::parity::compare(&model, &reference, reading, threads)?;
            let each = start.elapsed().as_secs_f64() * 1e3 / report.positions.max(1) as f64;
            writeln!(out, "{report:#?}\n{each:.1} ms a token, loading included")?;
            report.errors(xtask::parity::Bounds { agree, agree_all, kl })
        }
        Chore::Drift { model, reference, reading, agree, kl, threads } => {
            let found = xtask::parity::drift(&model, &reference, reading, threads)?;
            writeln!(out, "{found:#?}")?;
            xtask::parity::drift_errors(&found, agree, kl)
        }
        Chore::Quality(options) => {
            xtask::quality::measure(&options)?;
            Vec::new()
        }
        Chore::Fuzz { seconds, target, first } => xtask::fuzz::all(target.as_deref(), seconds, first)?,
        Chore::FuzzChild { target, milliseconds, first, note } => {
            xtask::fuzz::child(&target, milliseconds, first, &note)?;
            Vec::new()
        }
        Chore::FuzzSeeds => {
            writeln!(out, "{} seeds written", xtask::fuzz::write_seeds()?)?;
            Vec::new()
        }
        Chore::Ops => {
            xtask::ops::write()?;
            Vec::new()
        }
        Chore::Lint => {
            xtask::lint::write()?;
            Vec::new()
        }
        Chore::Fixtures { check: true, .. } => xtask::fixtures::check()?,
        Chore::Fixtures { search: Some(seeds), .. } => {
            let from = xtask::fixtures::SEED + 1;
            match xtask::fixtures::search(from..from + seeds)? {
                Some((seed, margin)) => writeln!(out, "seed {seed}: every token leads by {margin} at least")?,
                None => writeln!(out, "none of them")?,
            }
            Vec::new()
        }
        Chore::Fixtures { .. } => {
            xtask::fixtures::write(&xtask::fixtures::folder())?;
            Vec::new()
        }
        Chore::Coremltools { package, checkpoint } => {
            xtask::coremltools::check(&package, checkpoint.as_deref())?.into_iter().collect()
        }
        Chore::Bench(Bench::Session { model, output, threads, every, turns }) => {
            let output = output.unwrap_or_else(|| xtask::root().join("docs/bench"));
            let (every, turns) = (every.max(1), turns.max(1));
            let settings = xtask::bench::session::Settings { model, output, threads, every, turns };
            xtask::bench::session::run(&settings, &mut out)?
        }
        Chore::Bench(Bench::Cpu(options)) => {
            write!(out, "{}", xtask::bench::cpu::run(&options)?)?;
            Vec::new()
        }
        Chore::Bench(Bench::Promises(options)) => xtask::bench::promises::run(&options, &mut out)?,
        Chore::BenchChild(options) => {
            writeln!(out, "{}", xtask::bench::child(&options)?)?;
            Vec::new()
        }
        Chore::BigCheckpoint { folder } => {
            xtask::big::write(&folder)?;
            Vec::new()
        }
        Chore::Model => {
            let model = anemone_cli::acquire::reference_model(&anemone_cli::acquire::Terminal::default())?;
            writeln!(out, "{}", model.path.display())?;
            Vec::new()
        }
    };
    errors.iter().try_for_each(|error| writeln!(out, "error: {error}"))?;
    Ok(if errors.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
