//! How a compiled package is loaded.

use crate::ComputeUnits;

/// How often shapes of inputs change (macOS 14.4, iOS 17.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReshapeFrequency {
    /// Core ML's own default: a change of shapes is cheap.
    #[default]
    Frequent,
    /// A change of shapes may compile anew. One project reports crashes with it.
    Infrequent,
}

/// What the system optimises for while it prepares a program (macOS 15, iOS 18).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Specialization {
    /// Core ML's own default.
    #[default]
    Balanced,
    /// Longer preparation, faster predictions.
    FastPrediction,
}

impl ReshapeFrequency {
    /// The value of Apple's `MLReshapeFrequencyHint`.
    #[must_use]
    pub fn raw(self) -> isize {
        match self {
            Self::Frequent => 0,
            Self::Infrequent => 1,
        }
    }
}

impl Specialization {
    /// The value of Apple's `MLSpecializationStrategy`.
    #[must_use]
    pub fn raw(self) -> isize {
        match self {
            Self::Balanced => 0,
            Self::FastPrediction => 1,
        }
    }
}

/// How one function of a compiled package is loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// The units that may be used.
    pub units: ComputeUnits,
    /// The function; none for packages of one function, which must not be given a name.
    pub function: Option<String>,
    /// Whether shapes change often. Anemone's packages have fixed shapes, so nothing changes.
    pub reshape: ReshapeFrequency,
    /// What to optimise for.
    pub specialization: Specialization,
    /// Whether the GPU may add up in half floats.
    pub low_precision_on_gpu: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Apple's headers `MLReshapeFrequencyHint.h` and `MLSpecializationStrategy.h`.
    #[test]
    fn raw_values_are_apples() {
        assert_eq!((ReshapeFrequency::Frequent.raw(), ReshapeFrequency::Infrequent.raw()), (0, 1));
        assert_eq!((Specialization::Balanced.raw(), Specialization::FastPrediction.raw()), (0, 1));
    }

    #[test]
    fn the_default_keeps_the_gpu_out() {
        let default = Configuration::default();
        assert!(default.units.allows_neural_engine() && !default.units.allows_gpu() && !default.low_precision_on_gpu);
    }
}
