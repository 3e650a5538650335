//! The commands, one a file.

use std::io::{Write, stdout};

use anyhow::Result;
use clap::Subcommand;

mod bench;
mod chat;
pub(crate) mod convert;
mod doctor;
mod explain;
mod inspect;
mod lint;
mod models;
mod placement;
mod predict;
mod prefix;
mod run;
mod sessions;
mod verify;

/// What to do.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is one")]
pub(crate) enum Command {
    Run(run::Arguments),
    Chat(chat::Arguments),
    Convert(convert::Arguments),
    Inspect(inspect::Arguments),
    Lint(lint::Arguments),
    Verify(verify::Arguments),
    Predict(predict::Arguments),
    Models(models::Arguments),
    Sessions(sessions::Arguments),
    Prefix(prefix::Arguments),
    Placement(placement::Arguments),
    Bench(bench::Arguments),
    Doctor(doctor::Arguments),
    Explain(explain::Arguments),
}

impl Command {
    pub(crate) fn run(self) -> Result<()> {
        match self {
            Command::Run(arguments) => run::run(&arguments),
            Command::Chat(arguments) => chat::run(&arguments),
            Command::Convert(arguments) => convert::run(&arguments),
            Command::Inspect(arguments) => inspect::run(&arguments),
            Command::Lint(arguments) => lint::run(&arguments),
            Command::Verify(arguments) => verify::run(&arguments),
            Command::Predict(arguments) => predict::run(&arguments),
            Command::Models(arguments) => models::run(&arguments),
            Command::Sessions(arguments) => sessions::run(&arguments),
            Command::Prefix(arguments) => prefix::run(&arguments),
            Command::Placement(arguments) => placement::run(&arguments),
            Command::Bench(arguments) => bench::run(&arguments),
            Command::Doctor(arguments) => doctor::run(&arguments),
            Command::Explain(arguments) => explain::run(&arguments),
        }
    }
}

/// What `anemone` alone says.
pub(crate) fn greet() -> Result<()> {
    let text =
        "Anemone keeps a conversation warm: a language model as a Core ML package whose cache stays between turns.

  anemone run \"Why is the sky blue?\"     ask one question
  anemone chat                            have a conversation
  anemone convert model.gguf -o model/    make a package of a GGUF file or a folder from Hugging Face
  anemone --help                          everything else

The first use fetches and converts a small model (SmolLM2-135M-Instruct, about 100 MB); later uses start at once.
";
    stdout().write_all(text.as_bytes())?;
    Ok(())
}
