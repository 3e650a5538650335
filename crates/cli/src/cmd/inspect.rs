//! `anemone inspect`: what a package holds.

use std::io::{BufWriter, Write, stdout};
use std::path::PathBuf;

use anemone_mil::verify_model;
use anemone_package::Package;
use anyhow::{Context, Result};
use clap::Args;

use crate::packages;
use crate::report::Report;

/// Show what a package holds: functions, ports, states, operations, weights
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  anemone inspect model.mlpackage
  anemone inspect smollm2/                       a converted folder
  anemone inspect model.mlpackage --json         for programs
  anemone inspect model.mlpackage --mil | less   the program as text

Packages that cannot run here can be inspected all the same; what stands in the way is listed.")]
pub(crate) struct Arguments {
    /// A .mlpackage, a .mlmodel, a converted folder, or the name of a cached model
    package: PathBuf,
    /// Print the program in the text form of MIL
    #[arg(long, conflicts_with = "json")]
    mil: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let path = packages::find(&arguments.package)?;
    let package = Package::open(&path)?;
    let model = anemone_mil::decode(&package).with_context(|| path.display().to_string())?;
    let mut out = BufWriter::new(stdout().lock());
    if arguments.mil {
        write!(out, "{}", model.program)?;
    } else {
        let problems = verify_model(&model).iter().map(ToString::to_string).collect();
        let report = Report::of(&package, &model, problems)?;
        if arguments.json {
            serde_json::to_writer_pretty(&mut out, &report)?;
            writeln!(out)?;
        } else {
            report.print(&mut out)?;
        }
    }
    out.flush()?;
    Ok(())
}
