//! Packages that Anemone did not make, with the logits that PyTorch gives.

use std::path::PathBuf;

use anemone::{ModelOptions, PackageRunner, Runner};
use safetensors::{Dtype, SafeTensors};

/// The folder of fixtures, beside the checkout unless `ANEMONE_FIXTURES` names it.
pub(crate) fn folder() -> PathBuf {
    let default = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures");
    let folder = std::env::var_os("ANEMONE_FIXTURES").map_or(default, PathBuf::from);
    assert!(folder.is_dir(), "no fixtures at {}: set ANEMONE_FIXTURES to their folder", folder.display());
    folder
}

/// Tokens, and the logits that follow each.
pub(crate) struct Reference {
    pub(crate) tokens: Vec<u32>,
    logits: Vec<f32>,
    /// The largest error allowed: the fixtures' README states it.
    pub(crate) tolerance: f32,
}

impl Reference {
    pub(crate) fn read(name: &str) -> Self {
        let bytes = std::fs::read(folder().join(name).join("ref.safetensors")).unwrap();
        let tensors = SafeTensors::deserialize(&bytes).unwrap();
        let words = |tensor: &str, dtype: Dtype| {
            let view = tensors.tensor(tensor).unwrap();
            assert_eq!(view.dtype(), dtype);
            view.data().chunks_exact(4).map(|b| [b[0], b[1], b[2], b[3]]).collect::<Vec<_>>()
        };
        Self {
            tokens: words("tokens", Dtype::I32).into_iter().map(|b| i32::from_le_bytes(b) as u32).collect(),
            logits: words("logits", Dtype::F32).into_iter().map(f32::from_le_bytes).collect(),
            tolerance: if name.ends_with("fp32") { 0.001 } else { 0.01 },
        }
    }

    /// The logits that follow the first `position` tokens.
    pub(crate) fn after(&self, position: usize) -> &[f32] {
        let vocabulary = self.logits.len() / self.tokens.len();
        &self.logits[(position - 1) * vocabulary..position * vocabulary]
    }

    /// Holds logits to those that follow the first `position` tokens.
    pub(crate) fn check(&self, position: usize, logits: &[f32]) -> Result<(), String> {
        let expected = self.after(position);
        let worst = logits.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        if logits.len() != expected.len() || logits.iter().any(|l| l.is_nan()) || worst > self.tolerance {
            return Err(format!("after {position} tokens: off by up to {worst}"));
        }
        if argmax(logits) != argmax(expected) {
            return Err(format!("after {position} tokens: argmax {} for {}", argmax(logits), argmax(expected)));
        }
        Ok(())
    }
}

pub(crate) fn argmax(row: &[f32]) -> usize {
    (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap()
}

pub(crate) fn options() -> ModelOptions {
    ModelOptions { threads: Some(2), ..ModelOptions::default() }
}

/// Feeds tokens in pieces to a fresh state, and gives the state and the logits after each piece.
pub(crate) fn feed(runner: &PackageRunner, tokens: &[u32], pieces: &[usize]) -> (anemone::PackageState, Vec<Vec<f32>>) {
    assert_eq!(pieces.iter().sum::<usize>(), tokens.len());
    let mut state = runner.new_state().unwrap();
    let (mut position, mut all) = (0, Vec::new());
    for &piece in pieces {
        let mut logits = vec![f32::NAN; runner.vocabulary()];
        runner.feed(&mut state, position, &tokens[position..position + piece], &mut logits).unwrap();
        position += piece;
        all.push(logits);
    }
    (state, all)
}
