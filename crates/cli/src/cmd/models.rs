//! `anemone models`: what is cached.

use std::io::{Write, stdout};

use anemone_cli::home::{Home, Kind};
use anemone_cli::units;
use anemone_package::bundle::BundleManifest;
use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::json;

use crate::terminal;

/// List the models that are cached, or remove one
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  anemone models                                 what is cached, with sizes
  anemone models --json                          the same for programs
  anemone models remove SmolLM2-135M-Instruct    free its room

The folder is ANEMONE_HOME, or anemone in the user's cache folder.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Option<Action>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Remove a cached model or checkpoint
    #[command(after_help = "Example:\n  anemone models remove SmolLM2-135M-Instruct")]
    Remove {
        /// Its name, as `anemone models` lists it
        name: String,
    },
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let home = Home::locate()?;
    match &arguments.action {
        None => list(&home, arguments.json),
        Some(Action::Remove { name }) => {
            let gone = home.remove(name)?;
            terminal::note(&format!("Removed {} ({}).", gone.name, units::bytes(gone.bytes)));
            Ok(())
        }
    }
}

fn list(home: &Home, as_json: bool) -> Result<()> {
    let cached = home.list()?;
    let mut out = stdout().lock();
    if as_json {
        let all: Vec<_> = cached
            .iter()
            .map(|c| {
                let manifest = BundleManifest::read(&c.path).ok();
                json!({
                    "name": c.name,
                    "kind": kind(c.kind),
                    "path": c.path,
                    "bytes": c.bytes,
                    "context": manifest.as_ref().map(|m| m.context),
                    "weights": manifest.as_ref().map(|m| &m.weights),
                })
            })
            .collect();
        writeln!(out, "{}", serde_json::to_string_pretty(&json!({ "home": home.root(), "cached": all }))?)?;
        return Ok(());
    }
    if cached.is_empty() {
        terminal::note(&format!("Nothing is cached in {} yet; `anemone run` begins.", home.root().display()));
        return Ok(());
    }
    let width = cached.iter().map(|c| c.name.chars().count()).max().unwrap_or(0);
    for c in &cached {
        let more = match BundleManifest::read(&c.path) {
            Ok(m) => format!("  context {}, weights {}", m.context, terminal::printable(&m.weights)),
            Err(_) if c.kind == Kind::Model => "  not usable: convert it again".to_owned(),
            Err(_) => String::new(),
        };
        writeln!(out, "{:width$}  {:10}  {:>9}{more}", c.name, kind(c.kind), units::bytes(c.bytes))?;
    }
    let all = cached.iter().map(|c| c.bytes).sum();
    terminal::note(&format!("{} in {}", units::bytes(all), home.root().display()));
    Ok(())
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Model => "model",
        Kind::Checkpoint => "checkpoint",
    }
}
