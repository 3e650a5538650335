//! A converted model against what PyTorch gave for the same weights: argmax at each position, divergence of whole
//! distributions at some; and against its own exact arithmetic, at each position.

use std::path::Path;

use anemone::verify::{Agreement, Comparison, divergence};
use anemone::{ModelOptions, PackageRunner, Runner};
use anyhow::{Context, Result, bail};
use half::f16;
use safetensors::SafeTensors;

/// Positions whose best token leads by less than this may go either way.
const MARGIN: f32 = 0.05;

/// How a model reads the tokens before a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Reading {
    /// One by one, as when it answers.
    Single,
    /// All at once, in calls as wide as there are: each position is the last of a prompt.
    Prompts,
}

/// What a comparison found.
#[derive(Debug, Default, Clone, Copy)]
pub struct Report {
    /// Positions whose best token leads clearly in the reference.
    pub clear: usize,
    /// Of those, how many agree.
    pub agree: usize,
    /// All positions.
    pub positions: usize,
    /// Of all, how many agree.
    pub agree_all: usize,
    /// Mean Kullback-Leibler divergence from the reference's distribution, in nats.
    pub mean_kl: f64,
    /// The largest.
    pub worst_kl: f64,
    /// Distributions compared.
    pub distributions: usize,
}

/// Feeds the tokens of every prompt of the reference to the model at `folder`, and looks at what follows each.
///
/// # Errors
/// If the model or the reference cannot be read or run.
pub fn compare(folder: &Path, reference: &Path, reading: Reading, threads: usize) -> Result<Report> {
    let runner = open(folder, false, threads)?;
    let bytes = std::fs::read(reference)?;
    let prompts = Prompts(SafeTensors::deserialize(&bytes)?);
    let mut report = Report::default();
    let mut prompt = 0;
    while let Some(tokens) = prompts.tokens(prompt)? {
        let best = prompts.integers(prompt, "argmax")?;
        let margin = prompts.words(prompt, "margin")?;
        let at = prompts.integers(prompt, "positions")?;
        let rows = prompts.0.tensor(&format!("p{prompt}.logits"))?;
        let vocabulary = *rows.shape().last().context("logits have a vocabulary")?;
        let mut reader = Reader::new(&runner, reading)?;
        for position in 0..best.len().min(tokens.len()) {
            let logits = reader.after(&tokens[..=position])?;
            let found = (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap_or(0);
            let same = found == best[position] as usize;
            report.positions += 1;
            report.agree_all += usize::from(same);
            if f32::from_le_bytes(margin[position]) > MARGIN {
                report.clear += 1;
                report.agree += usize::from(same);
            }
            if let Some(row) = at.iter().position(|&p| p as usize == position) {
                let row = &rows.data()[row * vocabulary * 2..(row + 1) * vocabulary * 2];
                let expected: Vec<f32> =
                    row.chunks_exact(2).map(|b| f16::from_le_bytes([b[0], b[1]]).to_f32()).collect();
                let kl = divergence(&expected, logits);
                report.mean_kl += kl;
                report.worst_kl = report.worst_kl.max(kl);
                report.distributions += 1;
            }
        }
        prompt += 1;
    }
    if report.distributions == 0 {
        bail!("the reference holds no prompts");
    }
    report.mean_kl /= report.distributions as f64;
    Ok(report)
}

/// The same prompts, read by the model at `folder` as it comes and in exact arithmetic.
///
/// # Errors
/// As [`compare`].
pub fn drift(folder: &Path, reference: &Path, reading: Reading, threads: usize) -> Result<Agreement> {
    let (exact, runner) = (open(folder, true, threads)?, open(folder, false, threads)?);
    let bytes = std::fs::read(reference)?;
    let prompts = Prompts(SafeTensors::deserialize(&bytes)?);
    let mut comparison = Comparison::default();
    let mut prompt = 0;
    while let Some(tokens) = prompts.tokens(prompt)? {
        let (mut trusted, mut reader) = (Reader::new(&exact, Reading::Single)?, Reader::new(&runner, reading)?);
        for position in 0..tokens.len() {
            let read = &tokens[..=position];
            comparison.add(position, trusted.after(read)?, reader.after(read)?, tokens.get(position + 1).copied());
        }
        prompt += 1;
    }
    Ok(comparison.agreement())
}

fn open(folder: &Path, exact: bool, threads: usize) -> Result<PackageRunner> {
    let options = ModelOptions { threads: Some(threads), exact, ..ModelOptions::default() };
    Ok(PackageRunner::open(folder, &options)?)
}

/// The reference's prompts with the answers that PyTorch gave.
struct Prompts<'a>(SafeTensors<'a>);

impl Prompts<'_> {
    /// A prompt and its answer; none beyond the last.
    fn tokens(&self, prompt: usize) -> Result<Option<Vec<u32>>> {
        if self.0.tensor(&format!("p{prompt}.prompt")).is_err() {
            return Ok(None);
        }
        let mut tokens = self.integers(prompt, "prompt")?;
        tokens.extend(self.integers(prompt, "greedy")?);
        Ok(Some(tokens))
    }

    fn integers(&self, prompt: usize, name: &str) -> Result<Vec<u32>> {
        Ok(self.words(prompt, name)?.into_iter().map(u32::from_le_bytes).collect())
    }

    fn words(&self, prompt: usize, name: &str) -> Result<Vec<[u8; 4]>> {
        Ok(self.0.tensor(&format!("p{prompt}.{name}"))?.data().as_chunks().0.to_vec())
    }
}

/// A model that reads longer and longer beginnings of one text.
struct Reader<'a> {
    runner: &'a PackageRunner,
    reading: Reading,
    state: <PackageRunner as Runner>::State,
    logits: Vec<f32>,
}

impl<'a> Reader<'a> {
    fn new(runner: &'a PackageRunner, reading: Reading) -> Result<Self> {
        let state = runner.new_state().map_err(anyhow::Error::from_boxed)?;
        Ok(Self { runner, reading, state, logits: vec![0.0; runner.vocabulary()] })
    }

    /// What follows all of `tokens`; those before the last were read before.
    fn after(&mut self, tokens: &[u32]) -> Result<&[f32]> {
        let mut position = match self.reading {
            Reading::Single => tokens.len() - 1,
            Reading::Prompts => 0,
        };
        for tokens in tokens[position..].chunks(self.runner.chunk()) {
            let fed = self.runner.feed(&mut self.state, position, tokens, &mut self.logits);
            fed.map_err(anyhow::Error::from_boxed)?;
            position += tokens.len();
        }
        Ok(&self.logits)
    }
}

/// What a report must show.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The least share of clear positions that agree.
    pub agree: f64,
    /// The least share of all positions that agree, those that nearly tie among them.
    pub agree_all: f64,
    /// The largest mean divergence.
    pub kl: f64,
}

impl Report {
    /// What is wrong, if anything.
    #[must_use]
    pub fn errors(&self, bounds: Bounds) -> Vec<String> {
        let mut errors = Vec::new();
        let share = self.agree as f64 / self.clear.max(1) as f64;
        if share < bounds.agree {
            errors.push(format!(
                "{} of {} clear positions agree, {:.4} are needed",
                self.agree, self.clear, bounds.agree
            ));
        }
        if (self.agree_all as f64) < bounds.agree_all * self.positions as f64 {
            errors.push(format!(
                "{} of all {} positions agree, {:.4} are needed",
                self.agree_all, self.positions, bounds.agree_all
            ));
        }
        if self.mean_kl > bounds.kl || !self.mean_kl.is_finite() {
            errors.push(format!("the mean divergence is {:.2e}, at most {:.0e} is allowed", self.mean_kl, bounds.kl));
        }
        errors
    }
}

/// What is wrong with a [`drift`], if anything.
#[must_use]
pub fn drift_errors(found: &Agreement, agree: f64, kl: f64) -> Vec<String> {
    let mut errors = Vec::new();
    if found.top1() < agree {
        errors.push(format!("the best token is the same at {:.4} of the positions, {agree} are needed", found.top1()));
    }
    if found.mean_divergence > kl || found.mean_divergence.is_nan() {
        errors.push(format!("the mean divergence is {:.2e}, at most {kl:.0e} is allowed", found.mean_divergence));
    }
    errors
}
