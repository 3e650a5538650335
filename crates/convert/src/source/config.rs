//! The hyper-parameters of a model, whatever file they came from.

use std::f64::consts::TAU;
use std::path::Path;

use super::family::Family;
use crate::error::{ConvertError, Result};

/// The hyper-parameters of a decoder-only transformer with rotary positions and gated feed-forward layers.
#[derive(Debug, Clone)]
pub struct Config {
    /// The family of architectures that the model belongs to.
    pub family: &'static Family,
    /// Rows of the embedding.
    pub vocab_size: usize,
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Transformer layers.
    pub layers: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; divides `heads`.
    pub kv_heads: usize,
    /// Width of a head; even.
    pub head_dim: usize,
    /// Width of the feed-forward layers.
    pub ffn_size: usize,
    /// The epsilon of the RMS norms.
    pub norm_eps: f64,
    /// Rotary positions.
    pub rope: Rope,
    /// The context length that the model was made for, in tokens.
    pub context_length: usize,
    /// Whether the output projection is the embedding.
    pub tie_embeddings: bool,
    /// Whether the query, key and value projections have biases.
    pub qkv_bias: bool,
    /// Whether the attention's output projection has a bias.
    pub attention_output_bias: bool,
    /// Whether the feed-forward projections have biases.
    pub mlp_bias: bool,
    /// How many positions back attention looks, if not all the way.
    pub sliding_window: Option<usize>,
    /// The token that begins a text, if there is one.
    pub bos: Option<u32>,
    /// The tokens that end generation.
    pub eos: Vec<u32>,
}

/// Rotary positions.
#[derive(Debug, Clone, PartialEq)]
pub struct Rope {
    /// The base of the frequencies.
    pub theta: f64,
    /// How many dimensions of a head are rotated; even.
    pub dimensions: usize,
    /// How the frequencies are changed for longer contexts.
    pub scaling: RopeScaling,
}

/// Changes to the rotary frequencies for longer contexts.
#[derive(Debug, Clone, PartialEq)]
pub enum RopeScaling {
    /// Frequencies as they are.
    None,
    /// All frequencies divided by a factor.
    Linear {
        /// The divisor.
        factor: f64,
    },
    /// Llama 3's: low frequencies divided, high ones kept, those between blended.
    Llama3 {
        /// The divisor of the low frequencies.
        factor: f64,
        /// Wavelengths above `original_context / low_freq_factor` are low frequencies.
        low_freq_factor: f64,
        /// Wavelengths below `original_context / high_freq_factor` are high frequencies.
        high_freq_factor: f64,
        /// The context length before the scaling.
        original_context: f64,
    },
    /// A divisor for each frequency, from the GGUF tensor `rope_freqs.weight`.
    Factors(Vec<f32>),
}

impl Rope {
    /// The angle per position of each pair of dimensions, in radians: `dimensions / 2` numbers.
    ///
    /// The blending is that of `_compute_llama3_parameters` in Hugging Face's `modeling_rope_utils.py`.
    pub fn inverse_frequencies(&self) -> Vec<f64> {
        let plain = (0..self.dimensions / 2).map(|i| self.theta.powf(-2.0 * i as f64 / self.dimensions as f64));
        match &self.scaling {
            RopeScaling::None => plain.collect(),
            RopeScaling::Linear { factor } => plain.map(|f| f / factor).collect(),
            RopeScaling::Factors(factors) => plain.zip(factors).map(|(f, &factor)| f / f64::from(factor)).collect(),
            &RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context } => plain
                .map(|f| {
                    let wavelength = TAU / f;
                    if wavelength > original_context / low_freq_factor {
                        f / factor
                    } else if wavelength < original_context / high_freq_factor {
                        f
                    } else {
                        let keep =
                            (original_context / wavelength - low_freq_factor) / (high_freq_factor - low_freq_factor);
                        (1.0 - keep) * f / factor + keep * f
                    }
                })
                .collect(),
        }
    }
}

/// Bounds that every model of today keeps by far; they make later products free of overflow.
const MAX_WIDTH: usize = 1 << 20;
const MAX_VOCAB: usize = 1 << 24;
const MAX_LAYERS: usize = 1 << 12;
const MAX_CONTEXT: usize = 1 << 28;

impl Config {
    /// Refuses numbers that cannot be a model's.
    pub(super) fn check(&self, path: &Path) -> Result<()> {
        let within = |name: &str, value: usize, limit: usize| match value {
            1.. if value <= limit => Ok(()),
            _ => Err(ConvertError::setting(path, name, format!("{value}; expected 1 to {limit}"))),
        };
        within("vocabulary size", self.vocab_size, MAX_VOCAB)?;
        within("hidden size", self.hidden_size, MAX_WIDTH)?;
        within("number of layers", self.layers, MAX_LAYERS)?;
        within("number of heads", self.heads, MAX_WIDTH)?;
        within("number of key-value heads", self.kv_heads, self.heads)?;
        within("head size", self.head_dim, MAX_WIDTH)?;
        within("feed-forward size", self.ffn_size, MAX_WIDTH)?;
        within("context length", self.context_length, MAX_CONTEXT)?;
        within("rotary dimensions", self.rope.dimensions, self.head_dim)?;
        if let Some(window) = self.sliding_window {
            within("sliding window", window, MAX_CONTEXT)?;
        }
        if !self.heads.is_multiple_of(self.kv_heads) {
            let problem = format!("{} does not divide the number of heads, {}", self.kv_heads, self.heads);
            return Err(ConvertError::setting(path, "number of key-value heads", problem));
        }
        if self.heads.saturating_mul(self.head_dim) > MAX_WIDTH {
            return Err(ConvertError::setting(path, "number of heads", "heads times head size is too large"));
        }
        if !self.head_dim.is_multiple_of(2) || !self.rope.dimensions.is_multiple_of(2) {
            return Err(ConvertError::setting(path, "head size", "odd; rotary positions need pairs"));
        }
        let positive = |name: &str, value: f64| match value > 0.0 && value.is_finite() {
            true => Ok(()),
            false => Err(ConvertError::setting(path, name, format!("{value}; expected a positive number"))),
        };
        positive("norm epsilon", self.norm_eps)?;
        positive("rope theta", self.rope.theta)?;
        match &self.rope.scaling {
            RopeScaling::None => {}
            RopeScaling::Linear { factor } => positive("rope scaling factor", *factor)?,
            &RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context } => {
                positive("rope scaling factor", factor)?;
                positive("low_freq_factor", low_freq_factor)?;
                positive("high_freq_factor", high_freq_factor)?;
                positive("original_max_position_embeddings", original_context)?;
                positive("high_freq_factor - low_freq_factor", high_freq_factor - low_freq_factor)?;
            }
            RopeScaling::Factors(factors) => {
                let expected = self.rope.dimensions / 2;
                if factors.len() != expected {
                    let problem = format!("{} factors; expected {expected}, half the rotary dimensions", factors.len());
                    return Err(ConvertError::setting(path, "rope_freqs.weight", problem));
                }
                for &factor in factors {
                    positive("rope_freqs.weight", factor.into())?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rope(scaling: RopeScaling) -> Rope {
        Rope { theta: 500000.0, dimensions: 64, scaling }
    }

    #[test]
    fn llama3_scaling_keeps_high_divides_low_and_blends_between() {
        let scaled = rope(RopeScaling::Llama3 {
            factor: 32.0,
            low_freq_factor: 1.0,
            high_freq_factor: 4.0,
            original_context: 8192.0,
        })
        .inverse_frequencies();
        for (i, expected) in LLAMA3_2_1B {
            assert!((scaled[i] / expected - 1.0).abs() < 1e-12, "{i}: {} against {expected}", scaled[i]);
        }
    }

    #[test]
    fn linear_and_listed_factors_divide() {
        let plain = rope(RopeScaling::None).inverse_frequencies();
        assert_eq!(plain.len(), 32);
        assert_eq!(plain[0], 1.0);
        let linear = rope(RopeScaling::Linear { factor: 4.0 }).inverse_frequencies();
        let listed = rope(RopeScaling::Factors(vec![4.0; 32])).inverse_frequencies();
        for i in 0..32 {
            assert_eq!(linear[i], plain[i] / 4.0);
            assert_eq!(listed[i], plain[i] / 4.0);
        }
    }

    /// Llama 3.2 1B (base 500000, head size 64), evaluated in Python from the published formula.
    const LLAMA3_2_1B: [(usize, f64); 9] = [
        (0, 1.0),
        (1, 0.6636012376960885),
        (12, 0.0072926647372171085),
        (15, 0.001290547928209264),
        (16, 0.00042955679655936815),
        (17, 9.70828780262767e-05),
        (18, 1.9461638184831125e-05),
        (20, 8.570255489881478e-06),
        (31, 9.418306725434909e-08),
    ];
}
