//! Which units of the machine Core ML may use.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// A request, not a promise: what is really used is for the placement to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComputeUnits {
    /// Whatever Core ML likes best.
    All,
    /// The processor and the Neural Engine; never the GPU.
    #[default]
    CpuAndNeuralEngine,
    /// The processor and the GPU.
    CpuAndGpu,
    /// The processor alone.
    CpuOnly,
}

/// Each with its name here and its value in Apple's `MLComputeUnits`. The values are not in the order of the words: a table
/// that had them so ran "CPU only" on the GPU.
const TABLE: [(ComputeUnits, &str, isize); 4] = [
    (ComputeUnits::All, "all", 2),
    (ComputeUnits::CpuAndNeuralEngine, "cpu-and-neural-engine", 3),
    (ComputeUnits::CpuAndGpu, "cpu-and-gpu", 1),
    (ComputeUnits::CpuOnly, "cpu-only", 0),
];

impl ComputeUnits {
    /// All four, in the order in which they are listed for people.
    pub const ALL: [ComputeUnits; 4] =
        [ComputeUnits::All, ComputeUnits::CpuAndNeuralEngine, ComputeUnits::CpuAndGpu, ComputeUnits::CpuOnly];

    fn row(self) -> &'static (ComputeUnits, &'static str, isize) {
        TABLE.iter().find(|row| row.0 == self).expect("the table has every variant")
    }

    /// The name: `all`, `cpu-and-neural-engine`, `cpu-and-gpu`, `cpu-only`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// The value of Apple's `MLComputeUnits`.
    #[must_use]
    pub fn raw(self) -> isize {
        self.row().2
    }

    /// Whether the Neural Engine may be used.
    #[must_use]
    pub fn allows_neural_engine(self) -> bool {
        matches!(self, ComputeUnits::All | ComputeUnits::CpuAndNeuralEngine)
    }

    /// Whether the GPU may be used.
    #[must_use]
    pub fn allows_gpu(self) -> bool {
        matches!(self, ComputeUnits::All | ComputeUnits::CpuAndGpu)
    }
}

impl fmt::Display for ComputeUnits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ComputeUnits {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = TABLE.map(|(_, name, _)| name).join(", ");
        let found = TABLE.iter().find(|(_, name, _)| *name == text).map(|row| row.0);
        found.ok_or_else(|| format!("{text:?} names no compute units; expected one of {names}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Apple's header `MLModelConfiguration.h`.
    #[test]
    fn raw_values_are_apples() {
        assert_eq!(ComputeUnits::CpuOnly.raw(), 0);
        assert_eq!(ComputeUnits::CpuAndGpu.raw(), 1);
        assert_eq!(ComputeUnits::All.raw(), 2);
        assert_eq!(ComputeUnits::CpuAndNeuralEngine.raw(), 3);
    }

    #[test]
    fn names_go_both_ways() {
        for units in ComputeUnits::ALL {
            assert_eq!(units.name().parse(), Ok(units));
            assert_eq!(format!("{units}"), units.name());
            assert_eq!(TABLE.iter().filter(|row| row.0 == units || row.2 == units.raw()).count(), 1);
        }
        assert!("ane".parse::<ComputeUnits>().is_err_and(|e| e.contains("cpu-and-neural-engine")));
        assert_eq!(ComputeUnits::default(), ComputeUnits::CpuAndNeuralEngine);
    }

    #[test]
    fn what_each_allows() {
        let allows = ComputeUnits::ALL.map(|u| (u.allows_neural_engine(), u.allows_gpu()));
        assert_eq!(allows, [(true, true), (true, false), (false, true), (false, false)]);
    }
}
