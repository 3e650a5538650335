//! `anemone explain`: what an error of Core ML means.

use std::io::{BufWriter, Write, stdout};

use anemone_cli::text::wrapped;
use anemone_coreml::dictionary::{self, Entry};
use anyhow::Result;
use clap::Args;
use serde_json::json;

use crate::terminal;

/// Say what an error of Core ML means, and what to try
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  anemone explain                              everything there is an entry for
  anemone explain -14
  anemone explain ANECCompile FAILED 11
  anemone explain \"Couldn't communicate with a helper application.\"
  anemone explain --json 0x1d

The words may be a code, a name from the list, or a whole message. What is not known gets advice that is worth trying with \
any error.")]
pub(crate) struct Arguments {
    /// A code, a name, or a message; several words are put together
    #[arg(allow_hyphen_values = true)]
    code: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    // Whatever follows a code that begins with a hyphen is taken for a part of it.
    let (flags, words): (Vec<&String>, Vec<&String>) = arguments.code.iter().partition(|word| *word == "--json");
    let as_json = arguments.json || !flags.is_empty();
    let code = words.iter().map(|word| word.as_str()).collect::<Vec<_>>().join(" ");
    let mut out = BufWriter::new(stdout().lock());
    if code.trim().is_empty() {
        list(&mut out, as_json)?;
    } else {
        let found = dictionary::search(&code);
        if as_json {
            let object = json!({ "asked": code, "entries": found, "general": dictionary::GENERAL });
            writeln!(out, "{}", serde_json::to_string_pretty(&object)?)?;
        } else {
            show(&mut out, &code, &found)?;
        }
    }
    out.flush()?;
    Ok(())
}

fn list(out: &mut impl Write, as_json: bool) -> Result<()> {
    if as_json {
        writeln!(out, "{}", serde_json::to_string_pretty(&json!({ "entries": dictionary::ENTRIES }))?)?;
        return Ok(());
    }
    let width = dictionary::ENTRIES.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    for entry in dictionary::ENTRIES {
        writeln!(out, "{:width$}  {}", entry.name, entry.title)?;
    }
    Ok(())
}

fn show(out: &mut impl Write, code: &str, found: &[&Entry]) -> Result<()> {
    if found.is_empty() {
        writeln!(out, "Nothing is known here of: {}", terminal::printable(code))?;
        writeln!(out, "\nWhat is worth trying with any error:")?;
        return points(out, dictionary::GENERAL);
    }
    for (i, entry) in found.iter().enumerate() {
        if i > 0 {
            writeln!(out)?;
        }
        writeln!(out, "{}: {}\n", terminal::bold(entry.name), entry.title)?;
        wrapped(entry.cause, 0).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        writeln!(out, "\nWhat to try:")?;
        points(out, entry.remedies)?;
        writeln!(out, "\nWho saw it:")?;
        points(out, entry.evidence)?;
    }
    Ok(())
}

fn points(out: &mut impl Write, points: &[&str]) -> Result<()> {
    for point in points {
        for (i, line) in wrapped(point, 4).iter().enumerate() {
            writeln!(out, "{}{line}", if i == 0 { "  - " } else { "    " })?;
        }
    }
    Ok(())
}
