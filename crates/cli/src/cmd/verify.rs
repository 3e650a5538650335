//! `anemone verify`: whether a package computes what its source does.

use std::io::{BufWriter, Write, stdout};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anemone::verify::{self, Agreement, Comparison, WeightReport};
use anemone::{Location, ModelOptions, PackageRunner, Runner, Tokenizer};
use anemone_cli::acquire::{Terminal, by_id};
use anemone_cli::numbers;
use anemone_convert::Source;
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde::Serialize;

use crate::exit::Said;
use crate::progress::Interruptible;
use crate::{packages, terminal};

/// Compare a package with the checkpoint that it was made of: every weight, and the logits on a text
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  anemone verify smollm2/ --against SmolLM2-135M-Instruct.Q8_0.gguf
  anemone verify smollm2-ane/ --against SmolLM2-135M-Instruct/ --strict-fp16 --at 10 --at 4000
  anemone verify smollm2/ --against SmolLM2-135M-Instruct/ --text book.txt --tokens 512 --json

The source is computed by the plain formulas in single floats, with its weights as they are; nothing of the package's program \
and of the runtime's kernels takes part in it. --strict-fp16 rounds every half float of the package as soon as it is computed, \
as a Neural Engine would, and compares that with the package's own computation in single floats; operations that make \
infinities are named, with the part whose they are of a model in parts.

Exit codes: 0 the bounds are kept, 1 they are not, or something failed, 2 wrong arguments.")]
pub(crate) struct Arguments {
    /// A .mlpackage, a converted folder, or the name of a cached model
    package: PathBuf,
    /// What it was made of: a GGUF file, a folder in Hugging Face's form, or hf:OWNER/NAME
    #[arg(long, visible_alias = "reference", value_name = "SOURCE")]
    against: PathBuf,
    /// A text to compare on [default: a short one of our own]
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
    /// Tokens of it that are compared
    #[arg(long, value_name = "N", default_value_t = 128)]
    tokens: usize,
    /// Round every half float as soon as it is computed, at the positions of --at
    #[arg(long)]
    strict_fp16: bool,
    /// Positions for --strict-fp16, from each of which --strict-tokens are compared [default: 10]
    #[arg(long, value_name = "POSITION", requires = "strict_fp16")]
    at: Vec<usize>,
    /// Tokens that are compared at each position
    #[arg(long, value_name = "N", default_value_t = 8, requires = "strict_fp16")]
    strict_tokens: usize,
    /// The least share of positions with the same best token
    #[arg(long, value_name = "SHARE", default_value_t = 0.9, value_parser = numbers::share)]
    min_top1: f64,
    /// The largest mean Kullback-Leibler divergence, in nats
    #[arg(long, value_name = "NATS", default_value_t = 0.1, value_parser = numbers::bound)]
    max_divergence: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    weights: WeightReport,
    logits: Agreement,
    strict: Vec<StrictReport>,
    problems: Vec<String>,
}

#[derive(Serialize)]
struct StrictReport {
    position: usize,
    agreement: Agreement,
    overflows: Vec<String>,
}

/// Bounds of `--strict-fp16`.
const STRICT_TOP1: f64 = 0.98;
const STRICT_DIVERGENCE: f64 = 5e-3;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let path = &packages::path(&arguments.package)?;
    let location = Location::find(path)?;
    let stop = Arc::new(AtomicBool::new(false));
    let fetched = by_id(&arguments.against.to_string_lossy(), &Interruptible::new(&Terminal::default(), &stop))?;
    let source = Source::open(fetched.map_or_else(|| arguments.against.clone(), |acquired| acquired.path))?;
    let runner = PackageRunner::open(path, &ModelOptions::default())?;
    let vocabulary = source.config().vocab_size;
    ensure!(
        vocabulary == runner.vocabulary(),
        "{} has {} logits and {} a vocabulary of {vocabulary}: it is another model's package",
        path.display(),
        runner.vocabulary(),
        source.path().display()
    );
    let models = location.parts().iter().map(|path| Ok(anemone_mil::load::load(path)?)).collect::<Result<Vec<_>>>()?;
    let decode = &runner.info().calls[0].function;
    let functions = models.iter().map(|model| model.function(Some(decode)).or_else(|| model.function(None)));
    let functions = functions.collect::<Option<Vec<_>>>().context("a planned function is in each package")?;
    terminal::note("comparing weights");
    let weights = verify::weights(&functions, &source).map_err(anyhow::Error::msg)?;

    let all = tokens(arguments, &source)?;
    let count = arguments.tokens.min(all.len()).min(runner.context());
    terminal::note(&format!("computing {count} tokens by the source"));
    let text = &all[..count];
    let expected = verify::reference_logits(&source, text, runner.context(), 0)?;
    let failed = |e: anemone::RunnerError| anyhow::anyhow!("{e}");
    let (found, _) = verify::model_logits(&runner, text, 0).map_err(failed)?;
    let mut comparison = Comparison::default();
    for (i, (e, f)) in expected.iter().zip(&found).enumerate() {
        comparison.add(i, e, f, text.get(i + 1).copied());
    }
    let logits = comparison.agreement();

    let strict_options = ModelOptions { strict_fp16: true, ..ModelOptions::default() };
    let mut half = None;
    let mut strict = Vec::new();
    let default = [10];
    let at = if arguments.at.is_empty() { &default[..] } else { &arguments.at };
    for &position in at.iter().filter(|_| arguments.strict_fp16) {
        let end = position + arguments.strict_tokens;
        ensure!(end <= runner.context(), "position {position}: the package has {} positions", runner.context());
        terminal::note(&format!("computing {} tokens from {position} on in half floats", arguments.strict_tokens));
        let text: Vec<u32> = all.iter().copied().cycle().take(end).collect();
        let (_, state) = verify::model_logits(&runner, &text[..position], position).map_err(failed)?;
        let mut live = runner.copy_state(&state, position).map_err(failed)?.context("states of packages are copied")?;
        let mut expected = Vec::with_capacity(arguments.strict_tokens);
        for (position, token) in (position..).zip(&text[position..]) {
            let mut logits = vec![0.0; vocabulary];
            runner.feed(&mut live, position, std::slice::from_ref(token), &mut logits).map_err(failed)?;
            expected.push(logits);
        }
        let mut live = runner.copy_state(&state, position).map_err(failed)?.context("states of packages are copied")?;
        let half = match &mut half {
            Some(half) => half,
            none => none.insert(PackageRunner::open(path, &strict_options)?),
        };
        let mut comparison = Comparison::default();
        for (position, (token, expected)) in (position..).zip(text[position..].iter().zip(&expected)) {
            let mut logits = vec![0.0; vocabulary];
            half.feed(&mut live, position, std::slice::from_ref(token), &mut logits).map_err(failed)?;
            comparison.add(position, expected, &logits, None);
        }
        let overflows = half.overflows();
        strict.push(StrictReport { position, agreement: comparison.agreement(), overflows });
    }
    let problems = problems(arguments, &logits, &strict);
    let report = Report { weights, logits, strict, problems };
    let mut out = BufWriter::new(stdout().lock());
    if arguments.json {
        serde_json::to_writer_pretty(&mut out, &report)?;
        writeln!(out)?;
    } else {
        print(&report, &mut out)?;
    }
    out.flush()?;
    if report.problems.is_empty() { Ok(()) } else { Err(Said.into()) }
}

/// The tokens of the text; of a source without a tokenizer, some of the vocabulary.
fn tokens(arguments: &Arguments, source: &Source) -> Result<Vec<u32>> {
    let text = match &arguments.text {
        Some(path) => std::fs::read_to_string(path).with_context(|| path.display().to_string())?,
        None => verify::TEXT.to_owned(),
    };
    if !source.has_tokenizer() {
        let vocabulary = source.config().vocab_size as u64;
        let drawn = (0..arguments.tokens as u64).map(|i| (i.wrapping_mul(2_654_435_761) >> 7) % vocabulary);
        return Ok(drawn.map(|id| id as u32).collect());
    }
    let tokenizer = Tokenizer::from_bytes(source.tokenizer()?.json.as_bytes())?;
    let tokens = tokenizer.encode(&text, true)?;
    if tokens.len() < 2 {
        bail!("the text has {} tokens; expected 2 or more", tokens.len());
    }
    Ok(tokens)
}

fn problems(arguments: &Arguments, logits: &Agreement, strict: &[StrictReport]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut check = |what: &str, a: &Agreement, top1: f64, divergence: f64| {
        if a.top1() < top1 {
            problems.push(format!(
                "{what}: {:.4} of the best tokens agree, {top1} are asked for (--min-top1; docs/quality.md has what each \
                 form of weights reaches)",
                a.top1()
            ));
        }
        if a.mean_divergence.is_nan() || a.mean_divergence > divergence {
            problems.push(format!(
                "{what}: the mean divergence is {:.2e}, at most {divergence:.0e} is asked for",
                a.mean_divergence
            ));
        }
    };
    check("logits", logits, arguments.min_top1, arguments.max_divergence);
    for s in strict {
        check(&format!("half floats from {} on", s.position), &s.agreement, STRICT_TOP1, STRICT_DIVERGENCE);
    }
    problems
}

/// Tensors that are shown.
const SHOWN: usize = 5;

fn print(report: &Report, out: &mut dyn Write) -> Result<()> {
    let (errors, missing) = (&report.weights.errors, &report.weights.missing);
    writeln!(out, "weights  {} compared, {} not found by name", errors.len(), missing.len())?;
    for e in errors.iter().take(SHOWN) {
        writeln!(out, "  off by {:.4} % (rms), {:.4} % at worst: {}", 100.0 * e.relative, 100.0 * e.worst, e.tensor)?;
    }
    agreement("logits", &report.logits, out)?;
    let l = &report.logits;
    writeln!(out, "  perplexity {:.4}, of the source {:.4}", l.perplexity, l.reference_perplexity)?;
    for s in &report.strict {
        agreement(&format!("half floats from position {} on", s.position), &s.agreement, out)?;
        for overflow in s.overflows.iter().take(SHOWN) {
            writeln!(out, "  {overflow}")?;
        }
    }
    for problem in &report.problems {
        writeln!(out, "error: {problem}")?;
    }
    Ok(())
}

fn agreement(what: &str, a: &Agreement, out: &mut dyn Write) -> Result<()> {
    writeln!(
        out,
        "{what}  {} of {} best tokens agree ({} of {} that lead clearly); divergence {:.2e} on average, {:.2e} for 99 %, \
         {:.2e} at worst (position {})",
        a.same,
        a.positions,
        a.clear_same,
        a.clear,
        a.mean_divergence,
        a.divergence_99,
        a.worst_divergence,
        a.worst_position
    )?;
    Ok(())
}
