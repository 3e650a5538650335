//! A converted model against what PyTorch gave for the same weights: argmax at each position, divergence of whole
//! distributions at some.

use std::path::Path;
use std::sync::Arc;

use anemone::verify::divergence;
use anemone_cpu::{Instance, Plan, PlanOptions, Pool, State};
use anemone_mil::lower::PackCache;
use anemone_mil::{Data, DataMut};
use anyhow::{Context, Result, bail};
use half::f16;
use safetensors::SafeTensors;

/// Positions whose best token leads by less than this may go either way.
const MARGIN: f32 = 0.05;

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

/// Feeds every prompt of the reference, token by token, through `function` `decode` of the package at `folder`.
///
/// # Errors
/// If the package or the reference cannot be read or run.
pub fn compare(folder: &Path, reference: &Path, threads: usize) -> Result<Report> {
    let model = anemone_mil::load::load(&folder.join(anemone_package::bundle::PACKAGE))?;
    let function = model.function(Some("decode")).context("the package has no function `decode`")?;
    let plan = Arc::new(Plan::new(function, &PlanOptions::default(), &PackCache::default())?);
    let mut instance = Instance::new(plan.clone(), Pool::new(threads));
    let bytes = std::fs::read(reference)?;
    let tensors = SafeTensors::deserialize(&bytes)?;
    let ints = |name: &str| -> Result<Vec<i32>> {
        let view = tensors.tensor(name)?;
        Ok(view.data().chunks_exact(4).map(|b| i32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
    };
    let mut report = Report::default();
    let mut prompt = 0;
    while tensors.tensor(&format!("p{prompt}.prompt")).is_ok() {
        let mut tokens = ints(&format!("p{prompt}.prompt"))?;
        tokens.extend(ints(&format!("p{prompt}.greedy"))?);
        let best = ints(&format!("p{prompt}.argmax"))?;
        let margin = tensors.tensor(&format!("p{prompt}.margin"))?;
        let margin: Vec<f32> =
            margin.data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        let at = ints(&format!("p{prompt}.positions"))?;
        let rows = tensors.tensor(&format!("p{prompt}.logits"))?;
        let vocabulary = *rows.shape().last().context("logits have a vocabulary")?;
        let mut state = State::new(plan.states().clone());
        for (position, &token) in tokens.iter().enumerate().take(best.len()) {
            set(&mut instance, "input_ids", token)?;
            set(&mut instance, "cache_position", i32::try_from(position)?)?;
            instance.run(&mut state)?;
            let Data::F32(logits) = instance.output(0) else { bail!("logits are floats") };
            let found = (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap_or(0);
            let same = found == best[position] as usize;
            report.positions += 1;
            report.agree_all += usize::from(same);
            if margin[position] > MARGIN {
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

fn set(instance: &mut Instance, name: &str, value: i32) -> Result<()> {
    let index = instance.input_index(name).with_context(|| format!("the function has no input {name}"))?;
    match instance.input_mut(index) {
        DataMut::I32(v) => v.fill(value),
        _ => bail!("{name} is not of integers"),
    }
    Ok(())
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
