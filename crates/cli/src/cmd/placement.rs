//! `anemone placement`: where the operations of a package run.

use std::io::{BufWriter, Write, stdout};
use std::path::{Path, PathBuf};

use anemone::ComputeUnits;
use anemone_cli::numbers;
use anemone_cli::placement::{InParts, Placement, Source, predicted, write_in_parts, write_report};
use anemone_coreml::ComputePlan;
use anemone_package::Package;
use anyhow::Result;
use clap::Args;

use crate::exit::Said;
use crate::packages::{self, Part};
use crate::terminal;

/// Show where the operations of a package run, and which are off the Neural Engine and why
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  anemone placement smollm2/
  anemone placement m.mlpackage --min-ane 0.9      for CI: fails if a function has less on the Neural Engine
  anemone placement m.mlpackage --compute-units all --list
  anemone placement m.mlpackage --json

On Apple systems this is Core ML's own compute plan for this machine: what it means to do, not a measurement. Elsewhere it \
is a prediction from the program, by the rules of `anemone lint`, and says so.

SmolLM2-135M has 94.7 % of its operations on the Neural Engine by prediction, and 96.6 % if it is converted with --profile ane.

Exit codes: 0 well, 1 something failed or is below --min-ane, 2 wrong arguments.")]
pub(crate) struct Arguments {
    /// A .mlpackage, a converted folder, or the name of a cached model
    package: PathBuf,
    /// What may be used: all, cpu-and-neural-engine, cpu-and-gpu, cpu-only
    #[arg(long, value_name = "UNITS", default_value_t)]
    compute_units: ComputeUnits,
    /// Fail if a function has a smaller share of its operations on the Neural Engine, 0 to 1; of a model in parts, a call
    /// through all of them
    #[arg(long, value_name = "SHARE", value_parser = numbers::share)]
    min_ane: Option<f64>,
    /// List every operation that is off the Neural Engine, not only kinds
    #[arg(long, conflicts_with = "json")]
    list: bool,
    /// Predict, even where Core ML could be asked
    #[arg(long)]
    predict: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let opened = packages::open(&arguments.package)?;
    let placements = opened.parts.iter().map(|part| placement(part, arguments));
    let mut placements = placements.collect::<Result<Vec<_>>>()?;
    let mut out = BufWriter::new(stdout().lock());
    let whole = if let [_] = &placements[..] {
        let placement = placements.remove(0);
        if arguments.json {
            writeln!(out, "{}", serde_json::to_string_pretty(&placement)?)?;
        } else {
            write_report(&mut out, &placement, arguments.list)?;
        }
        placement
    } else {
        let models: Vec<_> = opened.parts.iter().map(|part| &part.model).collect();
        let steps = anemone::chain(&models).unwrap_or_default();
        let names = opened.parts.iter().map(|part| part.name.clone().unwrap_or_default());
        let (in_parts, whole) = InParts::of(names.zip(placements).collect(), &steps);
        if arguments.json {
            writeln!(out, "{}", serde_json::to_string_pretty(&in_parts)?)?;
        } else {
            write_in_parts(&mut out, &in_parts, arguments.list)?;
        }
        whole
    };
    out.flush()?;
    match arguments.min_ane.filter(|&least| whole.least_share() < least) {
        None => Ok(()),
        Some(least) => {
            let found = whole.least_share() * 100.0;
            let asked = least * 100.0;
            let how = if whole.source == Source::Prediction { " (predicted)" } else { "" };
            terminal::complain(&format!(
                "{found:.1} % on the Neural Engine{how}, less than the {asked:.1} % that --min-ane asks for: {}",
                whole.way_out()
            ));
            Err(Said.into())
        }
    }
}

fn placement(part: &Part, arguments: &Arguments) -> Result<Placement> {
    let units = arguments.compute_units;
    let (source, plan) = match asked(&part.package, &part.path, units, arguments.predict)? {
        Some(plan) => (Source::ComputePlan, plan),
        None => (Source::Prediction, predicted(&part.model, units)),
    };
    Ok(Placement::of(source, units, &plan, &part.model))
}

/// Core ML's plan, where there is Core ML.
#[cfg(target_vendor = "apple")]
fn asked(package: &Package, path: &Path, units: ComputeUnits, predict: bool) -> Result<Option<ComputePlan>> {
    use anemone_coreml::{Apple, CompileCache, Configuration, CoreMlError, Framework};

    if predict {
        return Ok(None);
    }
    let cache = CompileCache::new(anemone_cli::home::Home::locate()?.root().join("compiled"));
    let compiled = cache.get(&Apple, path, &package.digest()?, units, &mut crate::backends::tell)?;
    let configuration = Configuration { units, ..Configuration::default() };
    let plan = Apple.plan(&compiled.path, &configuration);
    let failed = |failure| CoreMlError::Failed { operation: "asking for the compute plan".to_owned(), failure };
    Ok(Some(plan.map_err(failed)?))
}

#[cfg(not(target_vendor = "apple"))]
#[allow(clippy::unnecessary_wraps, reason = "as on Apple systems")]
fn asked(_: &Package, _: &Path, _: ComputeUnits, _: bool) -> Result<Option<ComputePlan>> {
    Ok(None)
}
