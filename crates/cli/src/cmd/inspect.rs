//! `anemone inspect`: what a package holds.

use std::io::{BufWriter, Write, stdout};
use std::path::PathBuf;

use anemone_mil::verify_model;
use anyhow::Result;
use clap::Args;

use crate::report::{Overview, Report};
use crate::{packages, terminal};

/// Show what a package holds: functions, ports, states, operations, weights
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  anemone inspect model.mlpackage
  anemone inspect smollm2/                       a converted folder
  anemone inspect model.mlpackage --json         for programs
  anemone inspect model.mlpackage --mil | less   the program as text

Of a model in parts, an overview is shown: what each part has, and which feeds which; name the package of a part to see all of it. \
--json has all of every part.

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
    let opened = packages::open(&arguments.package)?;
    let mut out = BufWriter::new(stdout().lock());
    if arguments.mil {
        for part in &opened.parts {
            part.name.iter().try_for_each(|name| writeln!(out, "// part {}", terminal::printable(name)))?;
            write!(out, "{}", part.model.program)?;
        }
        return Ok(out.flush()?);
    }
    let reports = opened.parts.iter().map(|part| {
        let problems = verify_model(&part.model).iter().map(ToString::to_string).collect();
        Report::of(&part.package, &part.model, problems)
    });
    let mut reports = reports.collect::<Result<Vec<_>>>()?;
    match &opened.parts[..] {
        [_] if arguments.json => serde_json::to_writer_pretty(&mut out, &reports.remove(0))?,
        [_] => reports.remove(0).print(&mut out)?,
        _ => {
            let overview = Overview::of(&opened, reports);
            if arguments.json {
                serde_json::to_writer_pretty(&mut out, &overview)?;
            } else {
                overview.print(&mut out)?;
            }
        }
    }
    if arguments.json {
        writeln!(out)?;
    }
    Ok(out.flush()?)
}
