//! `anemone chat`: a conversation that stays warm.

mod command;
mod input;
mod stats;

use std::io::{Write, stdout};
use std::sync::Arc;

use anemone::{Error, Generation, StopReason, Turn};
use anemone_cli::sampling::Sampling;
use anyhow::Result;
use clap::Args;
use serde_json::json;

use crate::answer::{self, Conversation};
use crate::exit::{Interrupted, Said};
use crate::models::{Choice, Opened};
use crate::terminal;
use command::Command;
use input::{Input, Next};
use stats::Stats;

/// Have a conversation; each turn computes only what is new
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  anemone chat
  anemone chat smollm2/ --system \"Answer in one sentence.\"
  anemone chat model.gguf --context 8192 --temperature 0.7 --seed 1
  printf 'I am Ada.\\nWho am I?\\n' | anemone chat --temperature 0
  anemone chat --json < turns.txt

On a terminal: arrow keys edit and recall lines (kept for this conversation only), Ctrl-C stops an answer and keeps the \
conversation, Ctrl-D ends it. Commands: /reset /undo /retry /stats /help /quit.

Otherwise one line of standard input is one turn; a line that is one of these commands is that command. With --json \
each turn prints one object: text, tokens_reused, tokens_computed, tokens_generated, first_token_ms, per_token_ms, \
position, context, stop_reason. A turn that fails prints one with error, position and context, and the conversation \
goes on.

Exit codes: 0 ended, 1 something failed (of several turns: any), 2 wrong arguments, 130 interrupted.")]
pub(crate) struct Arguments {
    /// The model, as for --model
    #[arg(value_name = "MODEL", conflicts_with = "model")]
    positional: Option<String>,
    /// What the model is told before the conversation
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// Print one JSON object for each turn
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    sampling: Sampling,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    arguments.sampling.generation(&Generation::default()).check()?;
    let Opened { model, name } = arguments.choice.open(arguments.positional.as_deref())?;
    let model = Arc::new(model);
    let generation = arguments.sampling.generation(&model.generation);
    let mut input = Input::open(arguments.json)?;
    if input.is_typed() {
        let context = model.info().context;
        terminal::note(&format!("{name}, context {context} tokens. /help shows the commands, Ctrl-D ends."));
    }
    let mut session = Conversation::new(model)?;
    session.set_system(arguments.system.as_deref());
    Chat {
        session,
        generation,
        as_json: arguments.json,
        stats: Stats::default(),
        typed: input.is_typed(),
        failed: false,
    }
    .converse(&mut input)
}

struct Chat {
    session: Conversation,
    generation: Generation,
    as_json: bool,
    stats: Stats,
    /// Whether somebody types at a terminal.
    typed: bool,
    failed: bool,
}

impl Chat {
    fn converse(mut self, input: &mut Input) -> Result<()> {
        loop {
            match input.next()? {
                Next::End => break,
                Next::Unusable(problem) => self.fail(&problem)?,
                Next::Line(line) if line.trim().is_empty() => {}
                Next::Line(line) => match Command::parse(&line) {
                    Some(Command::Quit) => break,
                    Some(command) => self.command(command)?,
                    None if self.typed && line.starts_with('/') => {
                        terminal::note(&format!(
                            "There is no command {}; {}",
                            terminal::printable(&line),
                            Command::LIST
                        ));
                    }
                    None => self.turn(|session, request, events| session.say(&line, request, events))?,
                },
            }
        }
        if self.failed && !self.typed { Err(Said.into()) } else { Ok(()) }
    }

    fn command(&mut self, command: Command) -> Result<()> {
        match command {
            Command::Help => terminal::note(Command::HELP),
            Command::Stats => terminal::note(&self.stats.text(&self.session)),
            Command::Reset => {
                self.session.reset()?;
                self.stats = Stats::default();
                terminal::note("The conversation begins anew.");
            }
            Command::Undo => match self.session.undo() {
                Ok(text) => terminal::note(&format!("Taken back: {}", terminal::printable(&text))),
                Err(error) => self.fail(&error.to_string())?,
            },
            Command::Retry => self.turn(|session, request, events| session.regenerate(request, events))?,
            Command::Quit => {}
        }
        Ok(())
    }

    fn turn(
        &mut self,
        ask: impl FnOnce(&mut Conversation, &anemone::Request, &mut dyn FnMut(anemone::Event<'_>)) -> anemone::Result<Turn>,
    ) -> Result<()> {
        let session = &mut self.session;
        match answer::show(&self.generation, self.as_json, |request, events| ask(session, request, events)) {
            Ok(turn) => {
                self.stats.add(&turn);
                if !self.as_json {
                    answer::explain(&turn, HOW_TO_GO_ON);
                }
                // Somebody who types goes on; a script is over.
                if turn.stop_reason == StopReason::Cancelled && !self.typed {
                    return Err(Interrupted.into());
                }
                Ok(())
            }
            Err(error) => match error.downcast_ref::<Error>() {
                // The conversation is as it was before.
                Some(problem @ Error::ContextFull { .. }) => self.fail(&format!("{problem}{HOW_TO_GO_ON}")),
                Some(problem) => self.fail(&problem.to_string()),
                None => Err(error),
            },
        }
    }

    /// Tells of a turn that failed; the conversation goes on.
    fn fail(&mut self, problem: &str) -> Result<()> {
        self.failed = true;
        if self.as_json {
            let object = json!({
                "error": problem,
                "position": self.session.position(),
                "context": self.session.context(),
            });
            writeln!(stdout(), "{object}")?;
        } else {
            terminal::complain(problem);
        }
        Ok(())
    }
}

const HOW_TO_GO_ON: &str = ": /reset begins anew, /undo takes the last turn back";
