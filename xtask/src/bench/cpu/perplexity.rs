//! How well both sides predict the same text with the same weights.
//!
//! The measure is that of llama-perplexity: the text in pieces of 512 tokens, each read on its own, of which the tokens of the
//! second half are scored.

use std::path::PathBuf;

use anemone::{ModelOptions, PackageRunner, Runner, Tokenizer};
use anemone_package::bundle;
use anyhow::{Context, Result, ensure};

use super::super::models::Models;
use super::super::peer::Peer;
use super::super::process::run;

const PIECE: usize = 512;

/// Perplexity of both.
#[derive(Debug, Clone, Copy)]
pub(super) struct Compared {
    pub(super) ours: f64,
    pub(super) peer: f64,
    pub(super) pieces: usize,
}

pub(super) fn compare(models: &Models, peer: &Peer, pieces: usize) -> Result<Compared> {
    let path = text();
    Ok(Compared { ours: ours(models, &path, pieces)?, peer: theirs(models, peer, &path, pieces)?, pieces })
}

fn text() -> PathBuf {
    crate::root().join("docs/bench/text.txt")
}

fn ours(models: &Models, path: &PathBuf, pieces: usize) -> Result<f64> {
    let text = std::fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
    let tokenizer = Tokenizer::from_file(&models.package.join(bundle::TOKENIZER))?;
    let tokens = tokenizer.encode(&text, false)?;
    ensure!(tokens.len() >= pieces.max(2) * PIECE, "{} tokens are too few for {pieces} pieces", tokens.len());
    let runner = PackageRunner::open(&models.package, &ModelOptions::default())?;
    let mut logits = vec![0.0; runner.vocabulary()];
    let failed = |e: anemone::RunnerError| anyhow::anyhow!("{e}");
    let (mut sum, mut count) = (0.0, 0);
    for piece in tokens.chunks_exact(PIECE).take(pieces) {
        let mut state = runner.new_state().map_err(failed)?;
        let half = PIECE / 2;
        runner.feed(&mut state, 0, &piece[..half], &mut logits).map_err(failed)?;
        for at in half..PIECE - 1 {
            runner.feed(&mut state, at, &piece[at..=at], &mut logits).map_err(failed)?;
            sum += surprise(&logits, piece[at + 1] as usize);
            count += 1;
        }
    }
    Ok((sum / f64::from(count)).exp())
}

/// The negative logarithm of the probability of `token`.
fn surprise(logits: &[f32], token: usize) -> f64 {
    let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|&v| f64::from(v - top).exp()).sum();
    sum.ln() - f64::from(logits[token] - top)
}

fn theirs(models: &Models, peer: &Peer, path: &PathBuf, pieces: usize) -> Result<f64> {
    let mut command = peer.command("llama-perplexity");
    command.arg("-m").arg(&models.gguf).arg("-f").arg(path);
    command.args(["-c", &PIECE.to_string(), "--chunks", &pieces.to_string(), "-t", "2"]);
    let ran = run(&mut command)?;
    estimate(&ran.output).or_else(|| estimate(&ran.errors)).context("llama-perplexity printed no estimate")
}

/// The figure behind `Final estimate: PPL = `.
fn estimate(text: &str) -> Option<f64> {
    let (_, rest) = text.split_once("PPL = ")?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surprise_is_the_logarithm_of_the_share() {
        assert!((surprise(&[0.0, 0.0], 1) - 2f64.ln()).abs() < 1e-9);
        assert!((surprise(&[1000.0, 1000.0 + 3f32.ln()], 0) - 4f64.ln()).abs() < 1e-4);
        assert_eq!(estimate("Final estimate: PPL = 21.4302 +/- 0.7"), Some(21.4302));
        assert_eq!(estimate("nothing"), None);
    }
}
