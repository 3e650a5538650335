//! `anemone lint --with TEXT`: what becomes of a package in half floats.

use std::io::Write;
use std::path::Path;

use anemone::verify::{Agreement, Comparison};
use anemone::{ModelOptions, PackageRunner, Runner, Tokenizer};
use anemone_package::bundle;
use anyhow::{Context, Result, anyhow, ensure};
use serde::Serialize;

use crate::terminal;

/// What was found.
#[derive(Debug, Serialize)]
pub(super) struct HalfFloats {
    /// Operations that made infinities or NaN of finite operands.
    overflows: Vec<String>,
    /// The same program in half floats and in single ones.
    agreement: Agreement,
    /// Tokens whose logits are not all finite.
    broken: usize,
}

/// Of the best tokens that lead clearly, this share must be the same.
const TOP1: f64 = 0.98;
/// The largest mean divergence, in nats.
const DIVERGENCE: f64 = 5e-3;
/// Overflows that are shown.
const SHOWN: usize = 5;

impl HalfFloats {
    /// Whether it answers otherwise in half floats.
    pub(super) fn is_bad(&self) -> bool {
        let a = &self.agreement;
        let others = (a.clear_same as f64) < TOP1 * a.clear as f64;
        self.broken > 0 || others || a.mean_divergence.is_nan() || a.mean_divergence > DIVERGENCE
    }

    /// Whether something overflowed, harmless or not.
    pub(super) fn overflows(&self) -> bool {
        !self.overflows.is_empty()
    }

    pub(super) fn print(&self, out: &mut dyn Write) -> Result<()> {
        let a = &self.agreement;
        let severity = match (self.is_bad(), self.overflows()) {
            (true, _) => "error",
            (false, true) => "warning",
            (false, false) => "well",
        };
        writeln!(
            out,
            "\nIn half floats, {} tokens: {severity}; {} of {} best tokens are the same ({} of {} that lead clearly), \
             divergence {:.1e} on average",
            a.positions, a.same, a.positions, a.clear_same, a.clear, a.mean_divergence
        )?;
        if self.broken > 0 {
            writeln!(out, "  logits of {} tokens are infinite or no numbers", self.broken)?;
        }
        for overflow in self.overflows.iter().take(SHOWN) {
            writeln!(out, "  {}", terminal::printable(overflow))?;
        }
        if self.overflows.len() > SHOWN {
            writeln!(out, "  … and {} more (--json has them)", self.overflows.len() - SHOWN)?;
        }
        if self.is_bad() {
            writeln!(
                out,
                "  → the Neural Engine and GPUs compute like this: scale what overflows down beforehand (a norm by its \
                 largest element), or convert the model with `anemone convert`"
            )?;
        }
        Ok(())
    }
}

/// Runs the package at `path` on the first `count` tokens of the text in `file`, in half floats and in single ones.
pub(super) fn run(path: &Path, file: &Path, count: usize) -> Result<HalfFloats> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let open =
        |strict_fp16| PackageRunner::open(path, &ModelOptions { exact: true, strict_fp16, ..ModelOptions::default() });
    let exact = open(false)?;
    let tokens = tokens(path, &text, exact.vocabulary())?;
    let tokens = &tokens[..count.min(tokens.len()).min(exact.context())];
    ensure!(!tokens.is_empty(), "{}: there is no text in it", file.display());
    let failed = |error: anemone::RunnerError| anyhow!("{error}");
    let (expected, _) = anemone::verify::model_logits(&exact, tokens, 0).map_err(failed)?;
    drop(exact);
    let strict = open(true)?;
    let (found, _) = anemone::verify::model_logits(&strict, tokens, 0).map_err(failed)?;
    let (mut comparison, mut broken) = (Comparison::default(), 0);
    for (i, (expected, found)) in expected.iter().zip(&found).enumerate() {
        comparison.add(i, expected, found, tokens.get(i + 1).copied());
        broken += usize::from(found.iter().any(|logit| !logit.is_finite()));
    }
    Ok(HalfFloats { overflows: strict.overflows(), agreement: comparison.agreement(), broken })
}

/// The tokens of the text, by the tokenizer in or beside the package. Without one the text's bytes stand for tokens.
fn tokens(path: &Path, text: &str, vocabulary: usize) -> Result<Vec<u32>> {
    let beside = [Some(path), path.parent()].into_iter().flatten().map(|folder| folder.join(bundle::TOKENIZER));
    match beside.into_iter().find(|file| file.is_file()) {
        Some(file) => {
            let json = std::fs::read(&file).with_context(|| file.display().to_string())?;
            Ok(Tokenizer::from_bytes(&json)?.encode(text, true)?)
        }
        None => {
            terminal::note("There is no tokenizer.json beside the package: the text's bytes stand for tokens.");
            Ok(text.bytes().map(|byte| u32::from(byte) % vocabulary.max(1) as u32).collect())
        }
    }
}
