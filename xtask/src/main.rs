//! `cargo run -p xtask -- CHORE`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Chores of the Anemone workspace.
#[derive(Parser)]
#[command(name = "xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Check the tree: crate order, unsafe code, file lengths, words that do not land.
    Tidy,
    /// Check the licences of all dependencies against deny.toml.
    Licences,
    /// Fetch the GGUF file that the references were made from, and print its path.
    Model,
}

fn main() -> Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    let errors = match Arguments::parse().chore {
        Chore::Tidy => {
            let report = xtask::tidy::check()?;
            report.warnings.iter().try_for_each(|warning| writeln!(out, "warning: {warning}"))?;
            report.errors
        }
        Chore::Licences => xtask::licences::check()?,
        Chore::Model => {
            let model = anemone_cli::acquire::reference_model(&anemone_cli::acquire::Terminal::default())?;
            writeln!(out, "{}", model.path.display())?;
            Vec::new()
        }
    };
    errors.iter().try_for_each(|error| writeln!(out, "error: {error}"))?;
    Ok(if errors.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
