//! Rotary positions.

use std::f64::consts::TAU;
use std::ops::RangeInclusive;
use std::path::Path;

use super::config::{FACTORS, MAX_CONTEXT, within};
use crate::error::{ConvertError, Result};

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
    /// LongRoPE: a divisor for each frequency, and a magnitude for cosines and sines.
    Long {
        /// The divisors in contexts up to `original_context`.
        short: Vec<f32>,
        /// The divisors in longer ones.
        long: Vec<f32>,
        /// The context length before the scaling.
        original_context: usize,
        /// What cosines and sines are multiplied by, in any context.
        magnitude: f64,
    },
}

/// Bases of frequencies: beyond them a position has no angle that a single float holds.
const BASES: RangeInclusive<f64> = 1.0..=1e12;

impl Rope {
    /// The angle per position of each pair of dimensions, in radians: `dimensions / 2` numbers, for a cache of `context`
    /// positions.
    ///
    /// The blending is that of `_compute_llama3_parameters` in Hugging Face's `modeling_rope_utils.py`.
    pub fn inverse_frequencies(&self, context: usize) -> Vec<f64> {
        let divided = |factors: &[f32]| self.plain().zip(factors).map(|(f, &factor)| f / f64::from(factor)).collect();
        let plain = self.plain();
        match &self.scaling {
            RopeScaling::None => plain.collect(),
            RopeScaling::Linear { factor } => plain.map(|f| f / factor).collect(),
            RopeScaling::Factors(factors) => divided(factors),
            RopeScaling::Long { short, long, original_context, .. } => {
                divided(if context > *original_context { long } else { short })
            }
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

    /// What cosines and sines are multiplied by.
    pub fn magnitude(&self) -> f64 {
        match self.scaling {
            RopeScaling::Long { magnitude, .. } => magnitude,
            _ => 1.0,
        }
    }

    fn plain(&self) -> impl Iterator<Item = f64> + use<> {
        let (theta, dimensions) = (self.theta, self.dimensions);
        (0..dimensions / 2).map(move |i| theta.powf(-2.0 * i as f64 / dimensions as f64))
    }

    /// `base` is what the base is called.
    pub(super) fn check(&self, path: &Path, head_dim: usize, base: &str) -> Result<()> {
        let factor_of = |name: &str, value: f64| within(path, name, value, FACTORS);
        if !(1..=head_dim).contains(&self.dimensions) || !self.dimensions.is_multiple_of(2) {
            let problem = format!("{}; expected an even number of at most {head_dim}, the head size", self.dimensions);
            return Err(ConvertError::setting(path, "rotary dimensions", problem));
        }
        within(path, base, self.theta, BASES)?;
        let listed = |name: &str, factors: &[f32]| {
            let expected = self.dimensions / 2;
            if factors.len() != expected {
                let problem = format!("{} factors; expected {expected}, half the rotary dimensions", factors.len());
                return Err(ConvertError::setting(path, name, problem));
            }
            factors.iter().try_for_each(|&factor| factor_of(name, factor.into()))
        };
        match &self.scaling {
            RopeScaling::None => Ok(()),
            RopeScaling::Linear { factor } => factor_of("factor", *factor),
            &RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context } => {
                factor_of("factor", factor)?;
                factor_of("low_freq_factor", low_freq_factor)?;
                factor_of("high_freq_factor", high_freq_factor)?;
                within(path, "original_max_position_embeddings", original_context, 1.0..=MAX_CONTEXT as f64)?;
                factor_of("high_freq_factor - low_freq_factor", high_freq_factor - low_freq_factor)
            }
            RopeScaling::Factors(factors) => listed("rope_freqs.weight", factors),
            RopeScaling::Long { short, long, magnitude, .. } => {
                listed("short_factor", short)?;
                listed("long_factor", long)?;
                factor_of("attention_factor", *magnitude)
            }
        }
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
        .inverse_frequencies(4096);
        for (i, expected) in LLAMA3_2_1B {
            assert!((scaled[i] / expected - 1.0).abs() < 1e-12, "{i}: {} against {expected}", scaled[i]);
        }
    }

    #[test]
    fn linear_and_listed_factors_divide() {
        let plain = rope(RopeScaling::None).inverse_frequencies(4096);
        assert_eq!(plain.len(), 32);
        assert_eq!(plain[0], 1.0);
        let linear = rope(RopeScaling::Linear { factor: 4.0 }).inverse_frequencies(4096);
        let listed = rope(RopeScaling::Factors(vec![4.0; 32])).inverse_frequencies(4096);
        for i in 0..32 {
            assert_eq!(linear[i], plain[i] / 4.0);
            assert_eq!(listed[i], plain[i] / 4.0);
        }
    }

    #[test]
    fn long_contexts_have_their_own_divisors() {
        let long =
            RopeScaling::Long { short: vec![2.0; 32], long: vec![8.0; 32], original_context: 4096, magnitude: 1.19 };
        let (long, plain) = (rope(long), rope(RopeScaling::None));
        assert_eq!(long.inverse_frequencies(4096)[3], plain.inverse_frequencies(4096)[3] / 2.0);
        assert_eq!(long.inverse_frequencies(4097)[3], plain.inverse_frequencies(4097)[3] / 8.0);
        assert_eq!((long.magnitude(), plain.magnitude()), (1.19, 1.0));
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
