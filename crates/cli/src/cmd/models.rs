//! `anemone models`: what is cached.

use std::io::{Write, stdout};

use anemone_cli::home::{Home, Kind, PACKED, Removed};
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
  anemone models remove packed                   free the room of packed weights

`packed` is what weights were packed to for this processor, so that the next start is quick: it has 4 GB at most, goes with \
its model, and is made anew when it is needed.

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
    /// List what is cached, as `anemone models` does
    #[command(after_help = "Example:\n  anemone models list --json")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a cached model or checkpoint, or all packed weights
    #[command(alias = "delete", after_help = "Example:\n  anemone models remove SmolLM2-135M-Instruct")]
    Remove {
        /// Its name, as `anemone models` lists it
        name: String,
    },
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let home = Home::locate()?;
    match &arguments.action {
        None => list(&home, arguments.json),
        Some(Action::List { json }) => list(&home, *json || arguments.json),
        Some(Action::Remove { name }) => {
            let Removed { name, bytes, packed } = home.remove(name)?;
            let size = match (bytes, packed) {
                (bytes, 0) => units::bytes(bytes),
                (0, packed) => units::bytes(packed),
                (bytes, packed) => {
                    format!("{}, and {} that its weights were packed to", units::bytes(bytes), units::bytes(packed))
                }
            };
            terminal::note(&format!("Removed {name} ({size})."));
            Ok(())
        }
    }
}

fn list(home: &Home, as_json: bool) -> Result<()> {
    let cached = home.list()?;
    let packed = home.packed().bytes();
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
        let packed = json!({ "path": home.packed_path(), "bytes": packed });
        let all = json!({ "home": home.root(), "cached": all, "packed": packed });
        writeln!(out, "{}", serde_json::to_string_pretty(&all)?)?;
        return Ok(());
    }
    if cached.is_empty() && packed == 0 {
        terminal::note(&format!("Nothing is cached in {} yet; `anemone run` begins.", home.root().display()));
        return Ok(());
    }
    let width = cached.iter().map(|c| c.name.chars().count()).max().unwrap_or(0).max(PACKED.len());
    for c in &cached {
        let more = match BundleManifest::read(&c.path) {
            Ok(m) => format!("  context {}, weights {}", m.context, terminal::printable(&m.weights)),
            Err(_) if c.kind == Kind::Model => "  not usable: convert it again".to_owned(),
            Err(_) => String::new(),
        };
        writeln!(out, "{:width$}  {:10}  {:>9}{more}", c.name, kind(c.kind), units::bytes(c.bytes))?;
    }
    if packed > 0 {
        let more = "weights as this processor takes them";
        writeln!(out, "{PACKED:width$}  {:10}  {:>9}  {more}", "", units::bytes(packed))?;
    }
    let all = cached.iter().map(|c| c.bytes).sum::<u64>() + packed;
    terminal::note(&format!("{} in {}", units::bytes(all), home.root().display()));
    Ok(())
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Model => "model",
        Kind::Checkpoint => "checkpoint",
    }
}
