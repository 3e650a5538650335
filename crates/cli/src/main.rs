//! The binary `anemone`: reads arguments, runs one command, makes an exit code of what comes of it.

mod answer;
mod backends;
mod cmd;
mod exit;
mod file_limit;
mod interrupt;
mod logs;
mod models;
mod packages;
mod progress;
mod report;
mod terminal;

use std::process::ExitCode;

use clap::{ArgAction, Parser};

use cmd::Command;

/// Keeps a conversation warm: converts language models into Core ML packages whose key-value cache is state, and chats
/// with them.
#[derive(Debug, Parser)]
#[command(
    name = "anemone",
    version,
    after_help = "Examples:
  anemone run \"Why is the sky blue?\"     one question, one answer
  anemone chat                            a conversation
  anemone convert model.gguf -o model/    make a package whose cache is state
  anemone inspect model/                  what a package holds
  anemone lint model/ --profile ane       what in it will not run on the Neural Engine
  anemone predict model/ --help           run any package
  anemone models                          what is cached
  anemone sessions                        the conversations that are kept
  anemone prefix --system-file rules.txt  a long system message, computed once
  anemone doctor model/                   whether this machine and a package get along
  anemone explain -14                     what an error of Core ML means

The first `run` or `chat` fetches and converts a small model.

Exit codes: 0 all went well, 1 something failed, 2 wrong arguments, 130 interrupted.

Environment: ANEMONE_HOME is the folder for models and conversations, ANEMONE_LOG filters the log (such as debug), NO_COLOR turns \
colours off."
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Log more to standard error; repeat for yet more
    #[arg(short, long, action = ArgAction::Count, global = true)]
    verbose: u8,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let run = || {
        file_limit::outlive();
        logs::start(arguments.verbose)?;
        interrupt::listen()?;
        match arguments.command {
            Some(command) => command.run(),
            None => cmd::greet(),
        }
    };
    exit::code(run())
}
