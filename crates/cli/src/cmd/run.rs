//! `anemone run`: one question, one answer.

use std::io::{IsTerminal, Read, stdin};
use std::sync::Arc;

use anemone::{Generation, StopReason};
use anemone_cli::lines::MAX_LINE;
use anemone_cli::sampling::Sampling;
use anemone_cli::words;
use anyhow::{Context, Result, anyhow};
use clap::Args;

use crate::answer::{self, Conversation};
use crate::exit::{Interrupted, Usage};
use crate::models::Choice;

/// Answer one question
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  anemone run \"Why is the sky blue?\"
  anemone run -m model.gguf --weights int8 \"Name three rivers.\"
  anemone run -m smollm2/ --temperature 0 --max-tokens 40 Hello
  anemone run --json \"What is 7 times 8?\"
  anemone run < question.txt

The answer goes to standard output while it is generated, everything else to standard error. With --temperature 0 the \
same question always has the same answer.

Exit codes: 0 answered, 1 something failed, 2 wrong arguments, 130 interrupted.")]
pub(crate) struct Arguments {
    /// The question; several words are put together. Standard input if it is absent or -
    prompt: Vec<String>,
    /// What the model is told before the question
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// Print one JSON object: the text, tokens reused, computed and generated, times, position, why it ended
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    sampling: Sampling,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    // What is wrong with the arguments is said before a model is fetched.
    arguments.sampling.generation(&Generation::default()).check()?;
    let prompt = prompt(&arguments.prompt)?;
    let model = Arc::new(arguments.choice.open(None)?.model);
    let generation = arguments.sampling.generation(&model.generation);
    let mut session = Conversation::new(model)?;
    session.set_system(arguments.system.as_deref());
    let turn = answer::show(&generation, arguments.json, |request, events| session.say(&prompt, request, events));
    answer::tell_overflows(session.model());
    let turn = turn.map_err(|error| match error.downcast_ref() {
        Some(full @ anemone::Error::ContextFull { .. }) => anyhow!("{}{SHORTER}", words::of(full)),
        _ => error,
    })?;
    if turn.stop_reason == StopReason::Cancelled {
        return Err(Interrupted.into());
    }
    if !arguments.json {
        answer::explain(&turn, LONGER);
    }
    Ok(())
}

const LONGER: &str = "; --context has the model converted for a longer one";
const SHORTER: &str = "; shorten the question, or have the model converted for a longer context with --context";

fn prompt(words: &[String]) -> Result<String> {
    let from_stdin = matches!(words, [] | [_]) && words.first().is_none_or(|word| word == "-");
    let text = if from_stdin {
        if stdin().is_terminal() && words.is_empty() {
            return Err(Usage("what is the question? Try: anemone run \"Why is the sky blue?\"".into()).into());
        }
        let mut text = String::new();
        let taken = stdin().lock().take(MAX_LINE as u64 + 1).read_to_string(&mut text);
        if taken.context("cannot read the question from standard input")? > MAX_LINE {
            return Err(Usage(format!("the question is longer than the {MAX_LINE} bytes that are taken")).into());
        }
        text.trim_end_matches(['\n', '\r']).to_owned()
    } else {
        words.join(" ")
    };
    if text.trim().is_empty() {
        return Err(Usage("the question is empty".into()).into());
    }
    Ok(text)
}
