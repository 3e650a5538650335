//! Where a model runs, as arguments say.

use std::sync::Once;

use anemone::{Backend, BackendOptions, CompileProgress, ComputeUnits};
use anemone_cli::home::Home;
use anyhow::Result;
use clap::Args;

use crate::terminal;

/// Which runtime, and what of the machine it may use.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Where it runs")]
pub(crate) struct Where {
    /// auto (Core ML on Apple systems, Anemone's own runtime elsewhere), coreml, or cpu (Anemone's own)
    #[arg(long, value_name = "NAME", default_value_t)]
    backend: Backend,
    /// What Core ML may use: all, cpu-and-neural-engine, cpu-and-gpu, cpu-only. A request, not a promise; elsewhere than on
    /// Apple systems it is the CPU in any case [default: cpu-and-neural-engine]
    #[arg(long, value_name = "UNITS")]
    compute_units: Option<ComputeUnits>,
    /// Fail where the Neural Engine is allowed and would not run the model
    #[arg(long)]
    require_placement: bool,
}

impl Where {
    /// Whether Core ML will run it.
    pub(crate) fn uses_core_ml(&self) -> bool {
        self.backend == Backend::CoreMl || (self.backend == Backend::Auto && cfg!(target_vendor = "apple"))
    }

    /// What runs it, in words.
    pub(crate) fn subject(&self) -> String {
        if self.uses_core_ml() {
            format!("Core ML with {}", self.compute_units.unwrap_or_default())
        } else {
            "Anemone's own runtime on the CPU".to_owned()
        }
    }

    /// The options for the library.
    pub(crate) fn options(&self) -> Result<BackendOptions> {
        Ok(BackendOptions {
            backend: self.backend,
            units: self.compute_units,
            require_placement: self.require_placement,
            compiled: Some(Home::locate()?.root().join("compiled")),
            tell,
        })
    }

    /// The arguments that say the same.
    pub(crate) fn as_arguments(&self) -> Vec<String> {
        let mut all = vec![format!("--backend={}", self.backend)];
        all.extend(self.compute_units.map(|units| format!("--compute-units={units}")));
        all.extend(self.require_placement.then(|| "--require-placement".to_owned()));
        all
    }

    /// Says, once, that what was asked for is not to be had. Nothing if nothing was asked for.
    pub(crate) fn say_where_it_runs(&self) {
        static SAID: Once = Once::new();
        let asked = self.compute_units.filter(|&units| units != ComputeUnits::CpuOnly);
        if let Some(units) = asked.filter(|_| !self.uses_core_ml() && !self.require_placement) {
            SAID.call_once(|| {
                let missing = if cfg!(target_vendor = "apple") {
                    "the backend cpu uses the CPU alone"
                } else {
                    "there is no Core ML here"
                };
                terminal::note(&format!("{units}: {missing}; the model runs on the CPU, in Anemone's own runtime."));
            });
        }
    }
}

/// Tells what takes so long.
pub(crate) fn tell(progress: CompileProgress) {
    match progress {
        CompileProgress::FirstRun => {
            terminal::note(
                "The first run of this package on this system: Core ML compiles it, which can take minutes.",
            );
        }
        CompileProgress::Waiting => terminal::note("Another process is compiling this package; waiting for it."),
        CompileProgress::Done(took) => terminal::note(&format!("Compiled in {:.1} s.", took.as_secs_f64())),
        _ => {}
    }
}
