//! `anemone chat`: a conversation that stays warm.

mod command;
mod context;
mod input;
mod kept;
mod stats;

use std::io::{Write, stdout};
use std::sync::Arc;

use anemone::{Error, Generation, Overflow, StopReason, Turn};
use anemone_cli::notices::Notices;
use anemone_cli::room::RoomArguments;
use anemone_cli::sampling::Sampling;
use anemone_cli::units::counted;
use anemone_cli::words;
use anemone_coreml::Notice;
use anyhow::Result;
use clap::Args;
use serde_json::json;

use crate::answer::{self, Conversation};
use crate::cmd::prefix::System;
use crate::exit::{Interrupted, Said, Usage};
use crate::models::{Choice, Opened};
use crate::terminal;
use command::{Command, Line};
use input::{Input, Next};
use kept::Kept;
use stats::Stats;

/// Have a conversation; each turn computes only what is new
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  anemone chat
  anemone chat smollm2/ --system \"Answer in one sentence.\"
  anemone chat model.gguf --context 8192 --temperature 0.7 --seed 1
  printf 'I am Ada.\\nWho am I?\\n' | anemone chat --temperature 0
  anemone chat --session travel           kept: goes on where it ended, also after a crash
  anemone chat --json < turns.txt

On a terminal: arrow keys edit and recall lines (not written anywhere), Ctrl-C stops an answer and keeps the \
conversation, Ctrl-D ends it. Commands: /reset /undo /retry /rewind N /save NAME /load NAME /fork NAME /context /stats \
/help /quit.

When the machine gets hot, short of memory, or saves power, that is said between answers.

With --session every token is in the conversation's log before it is shown; `anemone sessions` lists what is kept.

When the conversation outgrows the context the model sums up its older turns and goes on with the system message, the \
summary and the last turns (--overflow has other ways); that is always said. A message that would not fit alone is refused.

Otherwise one line of standard input is one turn; a line that is one of these commands is that command. A line that \
begins with another word of this kind, such as /rest, is an error and not said to the model; //rest says /rest. With --json \
each turn prints one object: text, tokens_reused, tokens_computed, tokens_generated, tokens_drafted, tokens_accepted, \
first_token_ms, per_token_ms, position, context, stop_reason; and, where turns had to go, overflow: policy, tokens_before, tokens_after, \
turns_dropped, messages_dropped, summary, fallback. A turn that fails prints one with error, position and context, and the conversation \
goes on. /context prints one with event \"context\": context, system, summary, turns, read, margin, used, free; /stats one with \
event \"stats\": turns, tokens_reused, tokens_computed, tokens_generated, tokens_drafted, tokens_accepted, last_turn, position, \
context.

Exit codes: 0 ended, 1 something failed (of several turns: any), 2 wrong arguments, 130 interrupted.")]
pub(crate) struct Arguments {
    /// The model, as for --model
    #[arg(value_name = "MODEL", conflicts_with = "model")]
    positional: Option<String>,
    #[command(flatten)]
    system: System,
    /// Keep the conversation under this name, and go on with it if there is one
    #[arg(short, long, value_name = "NAME")]
    session: Option<String>,
    /// Print one JSON object for each turn
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    sampling: Sampling,
    #[command(flatten)]
    room: RoomArguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    arguments.sampling.generation(&Generation::default()).check()?;
    let system = arguments.system.text()?;
    let Opened { model, name } = arguments.choice.open(arguments.positional.as_deref())?;
    let model = Arc::new(model);
    let generation = arguments.sampling.generation(&model.generation);
    let mut input = Input::open(arguments.json)?;
    if input.is_typed() {
        let context = model.info().context;
        terminal::note(&format!("{name}, context {context} tokens. /help shows the commands, Ctrl-D ends."));
    }
    let (kept, mut session) = Kept::open(arguments.session.as_deref(), model)?;
    if let Some(text) = &system {
        let first = session.messages().next();
        if first.is_some_and(|first| first.role != "system" || first.content != *text) {
            terminal::note(
                "(--system is not what this conversation had; it is from now on, and all that follows it is read again with \
                 the next message)",
            );
        }
        session.set_system(Some(text));
    }
    let margin = arguments.room.margin(session.context()).map_err(Usage)?;
    session.set_overflow(arguments.room.overflow.into(), margin);
    Chat {
        session,
        kept,
        generation,
        as_json: arguments.json,
        stats: Stats::default(),
        notices: Notices::of_this_machine(),
        typed: input.is_typed(),
        failed: false,
    }
    .converse(&mut input)
}

struct Chat {
    session: Conversation,
    kept: Kept,
    generation: Generation,
    as_json: bool,
    stats: Stats,
    /// Heat, power and memory.
    notices: Notices,
    /// Whether somebody types at a terminal.
    typed: bool,
    failed: bool,
}

impl Chat {
    fn converse(mut self, input: &mut Input) -> Result<()> {
        tell(&self.notices.at_first());
        let ended = self.turns(input);
        self.kept.checkpoint(&mut self.session);
        ended?;
        if self.failed && !self.typed { Err(Said.into()) } else { Ok(()) }
    }

    fn turns(&mut self, input: &mut Input) -> Result<()> {
        loop {
            match input.next()? {
                Next::End => return Ok(()),
                Next::Unusable(problem) => self.fail(&problem)?,
                Next::Line(line) if line.trim().is_empty() => {}
                Next::Line(line) => match Line::parse(&line) {
                    Line::Command(Command::Quit) => return Ok(()),
                    Line::Command(command) => self.command(command)?,
                    Line::Unknown(word) => {
                        self.fail(&format!("there is no command {word}: {}; /{word} says it", Command::LIST))?;
                    }
                    Line::Incomplete(usage) => self.fail(usage)?,
                    Line::Text(text) => self.turn(|session, request, events| session.say(text, request, events))?,
                },
            }
        }
    }

    fn command(&mut self, command: Command) -> Result<()> {
        match command {
            Command::Help => terminal::note(Command::HELP),
            Command::Context => match self.session.usage() {
                Ok(usage) if self.as_json => writeln!(stdout(), "{}", context::object(&usage))?,
                Ok(usage) => terminal::note(&context::drawn(&usage)),
                Err(error) => self.fail(&error.to_string())?,
            },
            Command::Stats if self.as_json => writeln!(stdout(), "{}", self.stats.object(&self.session))?,
            Command::Stats => terminal::note(&self.stats.text(&self.session)),
            Command::Reset => {
                self.session.reset()?;
                self.stats = Stats::default();
                terminal::note("The conversation begins anew.");
            }
            Command::Undo => match self.session.undo() {
                Ok(text) => terminal::note(&format!("Taken back: {}", terminal::printable(&text))),
                Err(error) => self.fail(&words::of(&error))?,
            },
            Command::Retry => {
                let turns = self.stats.turns();
                let before = self.session.messages().last().cloned();
                self.turn(|session, request, events| session.regenerate(request, events))?;
                let same = self.session.messages().last() == before.as_ref();
                if self.stats.turns() > turns && same && self.generation.temperature == 0.0 && !self.as_json {
                    terminal::note("(the same as before: at temperature 0 nothing is drawn; try --temperature 0.7)");
                }
            }
            Command::Rewind(count) => match self.session.rewind_to_message(count) {
                Ok(()) => terminal::note(&format!("Back to the first {}.", counted(count, "message"))),
                Err(error) => self.fail(&words::of(&error))?,
            },
            Command::Save(name) => {
                let saved = self.kept.save(&name, &self.session);
                self.done(saved)?;
            }
            Command::Load(name) => {
                let loaded = self.kept.load(&name, &mut self.session);
                self.done(loaded)?;
            }
            Command::Fork(name) => {
                let forked = self.kept.fork(&name, &mut self.session);
                self.done(forked)?;
            }
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
                answer::tell_overflows(self.session.model());
                tell(&self.notices.changes());
                if !self.as_json {
                    let next = match self.session.overflow() {
                        Overflow::Summarize => ": older turns are summed up before the next one",
                        Overflow::DropOldest => ": the oldest turns are dropped before the next one",
                        _ => HOW_TO_GO_ON,
                    };
                    answer::explain(&turn, next);
                }
                // Somebody who types goes on; a script is over.
                if turn.stop_reason == StopReason::Cancelled && !self.typed {
                    return Err(Interrupted.into());
                }
                Ok(())
            }
            Err(error) => match error.downcast_ref::<Error>() {
                // The conversation is as it was before.
                Some(full @ Error::ContextFull { .. }) => self.fail(&format!("{}{HOW_TO_GO_ON}", words::of(full))),
                Some(problem) => self.fail(&words::of(problem)),
                None => Err(error),
            },
        }
    }

    /// Tells of a command that failed; the conversation is as it was.
    fn done(&mut self, done: anemone::Result<()>) -> Result<()> {
        done.or_else(|error| self.fail(&words::of(&error)))
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

/// Says what became of heat, power and memory.
fn tell(notices: &[Notice]) {
    notices.iter().for_each(|notice| terminal::note(&format!("({notice})")));
}

const HOW_TO_GO_ON: &str = ": /reset begins anew, /undo takes the last turn back";
