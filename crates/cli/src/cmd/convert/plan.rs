//! `anemone convert --plan`: what a conversion would make, with nothing written.

use std::io::{BufWriter, Write, stdout};

use anemone_cli::units;
use anemone_convert::lint::{Finding, Os};
use anemone_convert::{Conversion, Estimate, Fidelity, Options, Source};
use anyhow::Result;
use serde_json::json;

use crate::cmd::lint;
use crate::terminal;

/// What is known of how models fare whose weights are off by so much: what `anemone verify` found for SmolLM2-135M, a small
/// model, which feels it more than large ones do.
const EXPECTED: [(f64, &str); 5] = [
    (0.001, "the source's own answers: on SmolLM2-135M more than 99 of 100 best tokens are the same"),
    (0.02, "next to the source: on SmolLM2-135M 95 to 97 of 100 best tokens are the same"),
    (0.05, "near the source: on SmolLM2-135M 94 of 100 best tokens are the same, its perplexity within 1 %"),
    (
        0.12,
        "coherent: on SmolLM2-135M, a small model, which feels it most, 7 of 10 best tokens are the same, and its \
         perplexity is a tenth (lut4) to a fifth (int4) higher",
    ),
    (f64::INFINITY, "far from the source: small models lose coherence"),
];

/// What to expect of weights that are off by `relative` of their root mean square.
pub(super) fn expected(relative: f64) -> &'static str {
    EXPECTED.iter().find(|(most, _)| relative < *most).map_or(EXPECTED[4].1, |(_, words)| words)
}

/// Prints the plan.
pub(super) fn show(source: &Source, conversion: &Conversion<'_>, options: &Options, as_json: bool) -> Result<()> {
    let (estimate, findings, sample) = (conversion.estimate(), conversion.lint(Os::Ios18)?, conversion.sample()?);
    let plan = Plan { source, options, notes: conversion.notes(), estimate, findings, sample };
    let mut out = BufWriter::new(stdout().lock());
    match as_json {
        true => writeln!(out, "{}", serde_json::to_string_pretty(&plan.object())?)?,
        false => plan.text(&mut out)?,
    }
    out.flush()?;
    Ok(())
}

/// What is known of a conversion.
struct Plan<'a> {
    source: &'a Source,
    options: &'a Options,
    notes: Vec<String>,
    estimate: Estimate,
    findings: Vec<Finding>,
    sample: Fidelity,
}

impl Plan<'_> {
    fn text(&self, out: &mut impl Write) -> Result<()> {
        let Self { source, options, notes, estimate, findings, sample } = self;
        let name = terminal::printable(&source.name());
        writeln!(
            out,
            "{name} ({}), profile {}, {} weights",
            source.architecture().name,
            options.profile,
            options.weights_name()
        )?;
        for note in notes {
            writeln!(out, "  note     {}", terminal::printable(note))?;
        }
        writeln!(
            out,
            "  context  {} of the {} positions that the model was made for",
            estimate.context, estimate.trained_context
        )?;
        writeln!(out, "  cache    {} of memory for each conversation", units::bytes(estimate.cache_bytes))?;
        let bits = 8.0 * estimate.weight_bytes as f64 / estimate.weights.max(1) as f64;
        writeln!(out, "  package  about {}, {bits:.2} bits a weight", units::bytes(estimate.weight_bytes))?;
        writeln!(out, "  parts    {}", estimate.parts)?;
        writeln!(out, "  lint     {}", lint::summary(findings))?;
        lint::groups(findings).iter().try_for_each(|group| {
            writeln!(out, "           {} {}: {}", group[0].severity.name(), group[0].rule.id, group[0].rule.asks)
        })?;
        let relative = sample.relative_error();
        writeln!(out, "  quality  {}", expected(relative))?;
        writeln!(out, "           weights are off by {:.3} % (rms; a sample of each matrix)", 100.0 * relative)?;
        for m in sample.worst().iter().take(3).filter(|m| m.relative_error > 1e-3) {
            let tensor = terminal::printable(&m.tensor);
            writeln!(out, "           {:.2} %  {tensor} ({})", 100.0 * m.relative_error, m.form)?;
        }
        writeln!(out, "Nothing was written. `anemone verify` measures the quality of what is converted.")?;
        Ok(())
    }

    fn object(&self) -> serde_json::Value {
        let Self { source, options, notes, estimate, findings, sample } = self;
        let relative = sample.relative_error();
        let findings: Vec<_> = findings
        .iter()
        .map(|f| json!({ "rule": f.rule.id, "severity": f.severity.name(), "place": f.place.to_string(), "message": f.message }))
        .collect();
        let worst: Vec<_> = sample
            .worst()
            .iter()
            .take(8)
            .map(|m| json!({ "tensor": m.tensor, "form": m.form, "relative_error": m.relative_error }))
            .collect();
        json!({
            "model": source.name(),
            "architecture": source.architecture().name,
            "profile": options.profile.name(),
            "weights": options.weights_name(),
            "adapter": source.lora().map(|(_, about)| about),
            "context": estimate.context,
            "trained_context": estimate.trained_context,
            "cache_bytes": estimate.cache_bytes,
            "package_bytes": estimate.weight_bytes,
            "parts": estimate.parts,
            "weight_count": estimate.weights,
            "notes": notes,
            "lint": findings,
            "quality": { "relative_error": relative, "expected": expected(relative), "worst": worst },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_further_off_the_worse() {
        let words: Vec<_> = [0.0, 0.0005, 0.006, 0.03, 0.08, 0.3, f64::NAN].map(expected).into();
        assert_eq!((words[0], words[5]), (words[1], words[6]));
        let begin = ["the source's own", "the source's own", "next to", "near", "coherent", "far from"];
        assert!(words.iter().zip(begin).all(|(words, begin)| words.starts_with(begin)), "{words:?}");
    }
}
