//! `anemone bench`: how fast a model is here.

use std::fs;
use std::io::{BufWriter, Write, stdout};
use std::path::{Path, PathBuf};

use anemone::{Backend, BackendOptions, ComputeUnits, ModelOptions, ModelRunner};
use anemone_cli::bench::{Bench, Column, Outcome, Plan, measure, plot, write_table};
use anemone_cli::home::Home;
use anemone_cli::host::Host;
use anemone_coreml::DeviceKind;
use anyhow::{Context, Result, anyhow};
use clap::Args;

use crate::exit::Said;
use crate::{backends, packages, terminal};

/// Measure how fast a model is on this machine, on everything that it has
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  anemone bench smollm2/
  anemone bench smollm2/ --tokens 2048 --svg bench.svg      long enough to get hot
  anemone bench smollm2/ --compute-units cpu-only --json

A row for each of Core ML's compute units, and one for Anemone's own runtime: time to open, to the first token, per token \
(middle and 95th of 100), tokens a second, memory, heat. Then the same under load piece by piece, and a conversation \
turn by turn: with the cache kept, and with everything read again.

What a machine has not is said to be not on it. Energy is told where the system tells it without administrator rights: \
on Linux where powercap's counters can be read, which count all that the machine does.")]
pub(crate) struct Arguments {
    /// A .mlpackage, a converted folder, or the name of a cached model
    package: PathBuf,
    /// Only these of Core ML's units; repeat for several [default: all that the machine has]
    #[arg(long, value_name = "UNITS")]
    compute_units: Vec<ComputeUnits>,
    /// Tokens of the prompt before the first token
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    prompt: u32,
    /// Tokens generated under load
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    tokens: u32,
    /// Turns of the conversation
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1000))]
    turns: u32,
    /// Tokens that each turn adds
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    turn_tokens: u32,
    /// Threads of Anemone's own runtime [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = anemone_cli::numbers::threads, allow_negative_numbers = true)]
    threads: Option<u16>,
    /// Draw the curves as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let path = packages::path(&arguments.package)?;
    let machine = Host::look(Home::locate()?.root());
    let plan = Plan {
        prompt: arguments.prompt as usize,
        tokens: arguments.tokens as usize,
        turns: arguments.turns as usize,
        turn: arguments.turn_tokens as usize,
    };
    let asked = &arguments.compute_units;
    let wanted: Vec<ComputeUnits> =
        ComputeUnits::ALL.into_iter().filter(|units| asked.is_empty() || asked.contains(units)).collect();
    let mut columns = Vec::new();
    for units in wanted {
        let outcome = match missing(units, &machine) {
            Some(why) => Outcome::Absent(why),
            None => column(&path, Backend::CoreMl, Some(units), units.name(), arguments, &plan)?,
        };
        columns.push(Column { subject: format!("Core ML, {units}"), units: Some(units), outcome });
    }
    let own = column(&path, Backend::Cpu, None, "Anemone's CPU runtime", arguments, &plan)?;
    columns.push(Column { subject: "Anemone's CPU runtime".to_owned(), units: None, outcome: own });
    let bench = Bench { model: name(&arguments.package), machine, plan, columns };
    if let Some(file) = &arguments.svg {
        let svg = plot(&bench).map_err(|error| anyhow!("cannot draw: {error}"))?;
        fs::write(file, svg).with_context(|| file.display().to_string())?;
        terminal::note(&format!("Drawn to {}.", file.display()));
    }
    let mut out = BufWriter::new(stdout().lock());
    if arguments.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&bench)?)?;
    } else {
        write_table(&mut out, &bench)?;
    }
    out.flush()?;
    let failed = bench.columns.iter().any(|column| matches!(column.outcome, Outcome::Failed(_)));
    if failed { Err(Said.into()) } else { Ok(()) }
}

/// What to call the model.
fn name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// Why these units are not on this machine.
fn missing(units: ComputeUnits, machine: &Host) -> Option<String> {
    let has = |kind| machine.devices.iter().any(|device| device.kind == kind);
    match units {
        _ if !cfg!(target_vendor = "apple") => Some("not on this machine (no Core ML)".to_owned()),
        ComputeUnits::CpuAndNeuralEngine if !has(DeviceKind::NeuralEngine) => {
            Some("not on this machine (no Neural Engine)".to_owned())
        }
        ComputeUnits::CpuAndGpu if !has(DeviceKind::Gpu) => Some("not on this machine (no GPU)".to_owned()),
        _ => None,
    }
}

fn column(
    path: &Path,
    backend: Backend,
    units: Option<ComputeUnits>,
    subject: &str,
    arguments: &Arguments,
    plan: &Plan,
) -> Result<Outcome> {
    let compiled = Some(Home::locate()?.root().join("compiled"));
    let backend = BackendOptions { backend, units, compiled, tell: backends::tell, ..BackendOptions::default() };
    let options = ModelOptions { threads: arguments.threads.map(usize::from), backend, ..ModelOptions::default() };
    let mut progress = |what: &str| tracing::info!("{subject}: {what}");
    let measured = measure(|| Ok(ModelRunner::open(path, &options)?), plan, &mut progress);
    Ok(match measured {
        Ok(measured) => Outcome::Measured(Box::new(measured)),
        Err(error) => Outcome::Failed(error.to_string()),
    })
}
