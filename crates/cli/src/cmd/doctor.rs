//! `anemone doctor`: whether this machine and a package get along.

use std::io::{BufWriter, Write, stdout};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anemone::{Location, ModelOptions, ModelRunner, PackageRunner, ReferenceRunner};
use anemone_cli::doctor::{Event, Grade, Probe, examine, probe, write_report};
use anemone_cli::home::{Home, bytes_under};
use anemone_cli::host::Host;
use anemone_cli::watchdog::Limits;
use anemone_mil::model::Model;
use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;

use crate::backends::Where;
use crate::exit::Said;
use crate::{packages, terminal};

/// Tell what this machine has, and try a package in a process of its own
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  anemone doctor                       what this machine has
  anemone doctor smollm2/              try a package: load, state, prefill, decode, compare, end of context, soak
  anemone doctor smollm2/ --compute-units cpu-and-gpu
  anemone doctor m.mlpackage --soak 2000 --time-limit 1800 --json

Core ML may hang, be killed, or give wrong numbers without a word. So the package is tried in a process that is watched: \
one that takes too long or too much memory is ended, one that dies is told of with the step and the signal. Its logits are \
compared with those of the same package in Anemone's own runtime with exact arithmetic; those of small packages, or with \
--interpreter, with the plain interpreter's too, which is slow.

Exit codes: 0 all is well (odd findings included), 1 something failed, 2 wrong arguments.")]
pub(crate) struct Arguments {
    /// A .mlpackage, a converted folder, or the name of a cached model
    package: Option<PathBuf>,
    #[command(flatten)]
    place: Where,
    /// Most seconds for all of it; the first compile for the Neural Engine takes minutes
    #[arg(long, value_name = "SECONDS", default_value_t = 900, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    time_limit: u64,
    /// Most memory of the process, in MB [default: three quarters of the machine's]
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    memory_limit: Option<u64>,
    /// Predictions of the soak
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    soak: u32,
    /// Compare with the plain interpreter too, operation by operation, however long it takes; packages of less than 64 MB
    /// are anyway
    #[arg(long)]
    interpreter: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Be the process that is watched
    #[arg(long, hide = true)]
    watched: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if arguments.watched {
        return be_watched(arguments);
    }
    let home = Home::locate()?;
    let host = Host::look(home.root());
    let mut examinations = Vec::new();
    if let Some(package) = &arguments.package {
        let package = packages::path(package)?;
        arguments.place.say_where_it_runs();
        if !arguments.json {
            terminal::note("Trying the package in a process of its own; this takes a while.");
        }
        let mut command = Command::new(std::env::current_exe().context("cannot find my own program")?);
        command.arg("doctor").arg(&package).args(["--watched", "--soak", &arguments.soak.to_string()]);
        command.args(arguments.place.as_arguments()).args(arguments.interpreter.then_some("--interpreter"));
        let half_a_gigabyte = 1 << 29;
        let most = host.memory.map_or(u64::MAX, |all| (all / 4 * 3).max(half_a_gigabyte));
        let time = Duration::from_secs(arguments.time_limit);
        let memory = arguments.memory_limit.map_or(most, |mb| mb.saturating_mul(1_000_000));
        let limits = Limits { silence: time, time, memory };
        examinations.push(examine(&arguments.place.subject(), &mut command, &limits)?);
    }
    let mut out = BufWriter::new(stdout().lock());
    if arguments.json {
        let object = json!({ "machine": host, "examinations": examinations });
        writeln!(out, "{}", serde_json::to_string_pretty(&object)?)?;
    } else {
        write_report(&mut out, &host, &examinations)?;
    }
    out.flush()?;
    if examinations.iter().any(|examination| examination.grade() == Grade::Fail) { Err(Said.into()) } else { Ok(()) }
}

/// Takes the steps, each told in a line before and after.
fn be_watched(arguments: &Arguments) -> Result<()> {
    let path = arguments.package.as_deref().context("there is no package")?;
    let options = Probe { soak: arguments.soak as usize, ..Probe::default() };
    let backend = arguments.place.options()?;
    let mut tell = |event: Event| {
        let mut out = stdout().lock();
        let told = writeln!(out, "{}", event.line()).and_then(|()| out.flush());
        // Nobody watches any more.
        if told.is_err() {
            std::process::exit(1);
        }
    };
    let open = || Ok(ModelRunner::open(path, &ModelOptions { backend: backend.clone(), ..ModelOptions::default() })?);
    let trusted = || Ok(PackageRunner::open(path, &ModelOptions { exact: true, ..ModelOptions::default() })?);
    let models = to_interpret(path, arguments.interpreter);
    let plain =
        models.as_ref().map(|models| || Ok(ReferenceRunner::new(models.as_ref().map_err(Clone::clone)?, path)?));
    let grade = probe(open, trusted, plain, options, &mut tell);
    if grade == Grade::Fail { Err(Said.into()) } else { Ok(()) }
}

/// Bytes of packages that the interpreter is fast enough for.
const SMALL: u64 = 64 << 20;

/// The programs of a model that is to be interpreted: a small one, or any if it is asked for. What is wrong with them is told
/// in its turn.
fn to_interpret(path: &Path, any: bool) -> Option<Result<Vec<Model>, String>> {
    let location = match Location::find(path) {
        Ok(location) => location,
        Err(error) => return Some(Err(error.to_string())),
    };
    let small = location.parts().iter().map(|part| bytes_under(part)).sum::<u64>() < SMALL;
    let load = |path: &PathBuf| anemone_mil::load(path).map_err(|error| format!("{}: {error}", path.display()));
    (small || any).then(|| location.parts().iter().map(load).collect())
}
