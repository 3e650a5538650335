//! Which runtime a package is opened with.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use anemone_coreml::{ComputeUnits, Progress};

use crate::{Error, Result};

/// A runtime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// Core ML on Apple's systems, our own runtime elsewhere.
    #[default]
    Auto,
    /// Core ML.
    CoreMl,
    /// Our own runtime, on the processor.
    Cpu,
}

const NAMES: [(Backend, &str); 3] = [(Backend::Auto, "auto"), (Backend::CoreMl, "coreml"), (Backend::Cpu, "cpu")];

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAMES.iter().find(|(backend, _)| backend == self).map_or("", |(_, name)| name))
    }
}

impl FromStr for Backend {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = NAMES.iter().find(|(_, name)| *name == text);
        found.map(|(backend, _)| *backend).ok_or_else(|| format!("{text:?} is none of auto, coreml, cpu"))
    }
}

/// Which runtime, and what of the machine it may use.
#[derive(Clone, Debug)]
pub struct BackendOptions {
    /// The runtime.
    pub backend: Backend,
    /// The units that Core ML may use: a request, not a promise. None is the processor and the Neural Engine.
    pub units: Option<ComputeUnits>,
    /// Whether it is an error if the Neural Engine is allowed and would not run the model: on machines that have none, and
    /// where Core ML's plan puts less than [`REQUIRED_SHARE`](BackendOptions::REQUIRED_SHARE) of the operations there.
    pub require_placement: bool,
    /// The folder that keeps packages which Core ML compiled; one in the system's folder for temporary files if none.
    pub compiled: Option<PathBuf>,
    /// Is told while Core ML compiles, which takes minutes the first time.
    pub tell: fn(Progress),
}

impl BackendOptions {
    /// The share of operations that a required placement asks for.
    pub const REQUIRED_SHARE: f64 = 0.95;
}

impl Default for BackendOptions {
    fn default() -> Self {
        Self { backend: Backend::Auto, units: None, require_placement: false, compiled: None, tell: |_| {} }
    }
}

/// What it comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chosen {
    Cpu,
    CoreMl(ComputeUnits),
}

/// Decides, on a machine that has Core ML or has not.
///
/// # Errors
/// [`Error::NoCoreMl`], [`Error::Placement`].
pub(super) fn choose(options: &BackendOptions, has_core_ml: bool) -> Result<Chosen> {
    let units = options.units.unwrap_or_default();
    match (options.backend, has_core_ml) {
        (Backend::CoreMl, false) => Err(Error::NoCoreMl),
        (Backend::Auto | Backend::CoreMl, true) => Ok(Chosen::CoreMl(units)),
        (Backend::Auto, false) | (Backend::Cpu, _) => {
            if options.require_placement && units != ComputeUnits::CpuOnly {
                let found = if has_core_ml {
                    "the backend `cpu` uses neither GPU nor Neural Engine"
                } else {
                    "this machine has no Core ML, so the model would run on the CPU"
                };
                return Err(Error::Placement { units, found: found.to_owned() });
            }
            Ok(Chosen::Cpu)
        }
    }
}

#[cfg(target_vendor = "apple")]
pub(super) use apple::open_core_ml;

#[cfg(target_vendor = "apple")]
mod apple {
    use std::sync::Arc;

    use anemone_coreml::{Apple, ComputeUnits, DeviceKind, Framework, Specialization};

    use super::BackendOptions;
    use crate::location::Location;
    use crate::{CoreMlOptions, CoreMlRunner, Error, Result};

    pub(crate) fn open_core_ml(
        location: &Location,
        options: &BackendOptions,
        units: ComputeUnits,
    ) -> Result<CoreMlRunner<Apple>> {
        let apple = Arc::new(Apple);
        if options.require_placement && units.allows_neural_engine() {
            let has = apple.devices().iter().any(|device| device.kind == DeviceKind::NeuralEngine);
            if !has {
                return Err(Error::Placement { units, found: "this machine has no Neural Engine".to_owned() });
            }
        }
        let compiled = options.compiled.clone();
        let mut tell = options.tell;
        let mut wanted = CoreMlOptions {
            units,
            specialization: Specialization::default(),
            compiled: compiled.unwrap_or_else(|| std::env::temp_dir().join("anemone-compiled")),
            tell: &mut tell,
        };
        let runner = CoreMlRunner::open_at(&apple, location, &mut wanted)?;
        if options.require_placement && units.allows_neural_engine() {
            let share = runner.neural_engine_share()?;
            if share < BackendOptions::REQUIRED_SHARE {
                let found = format!("Core ML's plan puts {:.1} % of the operations there", share * 100.0);
                return Err(Error::Placement { units, found });
            }
        }
        Ok(runner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(backend: Backend, units: Option<ComputeUnits>, require_placement: bool) -> BackendOptions {
        BackendOptions { backend, units, require_placement, ..BackendOptions::default() }
    }

    #[test]
    fn core_ml_where_there_is_one_and_the_processor_elsewhere() {
        let auto = BackendOptions::default();
        assert_eq!(choose(&auto, true).unwrap(), Chosen::CoreMl(ComputeUnits::CpuAndNeuralEngine));
        assert_eq!(choose(&auto, false).unwrap(), Chosen::Cpu);
        let gpu = options(Backend::CoreMl, Some(ComputeUnits::CpuAndGpu), false);
        assert_eq!(choose(&gpu, true).unwrap(), Chosen::CoreMl(ComputeUnits::CpuAndGpu));
        assert!(matches!(choose(&gpu, false), Err(Error::NoCoreMl)));
        assert_eq!(choose(&options(Backend::Cpu, None, false), true).unwrap(), Chosen::Cpu);
    }

    #[test]
    fn a_required_placement_is_not_given_up_in_silence() {
        let asked = options(Backend::Auto, Some(ComputeUnits::CpuAndNeuralEngine), true);
        let error = choose(&asked, false).unwrap_err();
        assert!(error.to_string().contains("no Core ML"), "{error}");
        assert!(matches!(choose(&options(Backend::Cpu, None, true), true), Err(Error::Placement { .. })));
        assert_eq!(choose(&options(Backend::Auto, Some(ComputeUnits::CpuOnly), true), false).unwrap(), Chosen::Cpu);
    }

    #[test]
    fn names_go_both_ways() {
        for (backend, name) in NAMES {
            assert_eq!((name.parse(), backend.to_string()), (Ok(backend), name.to_owned()));
        }
        assert!("gpu".parse::<Backend>().is_err());
    }
}
