//! Answers on their way to standard output.

use std::io::{Write, stderr, stdout};

use anemone::{Cancel, Event, Generation, ModelRunner, Overflow, Overflowed, Request, Session, StopReason, Turn};
use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};

use crate::{interrupt, terminal};

/// A conversation with a package.
pub(crate) type Conversation = Session<ModelRunner>;

/// Says which operations overflowed, of a model that rounds every half float.
pub(crate) fn tell_overflows(model: &anemone::Model) {
    for overflow in model.runner.overflows() {
        terminal::note(&format!("(in half floats: {})", terminal::printable(&overflow)));
    }
}

/// Reading this many tokens is worth a bar.
const LONG: usize = 512;

/// Has `ask` generate an answer, which is shown while it comes, and which Ctrl-C stops. With `as_json` it is shown as one
/// object at its end.
pub(crate) fn show(
    generation: &Generation,
    as_json: bool,
    ask: impl FnOnce(&Request, &mut dyn FnMut(Event<'_>)) -> anemone::Result<Turn>,
) -> Result<Turn> {
    let cancel = Cancel::new();
    let request = Request { cancel: cancel.clone(), ..Request::new(generation.clone()) };
    let guard = interrupt::stops({
        let cancel = cancel.clone();
        move || cancel.cancel()
    });
    let is_terminal = std::io::IsTerminal::is_terminal(&stdout());
    let mut out = stdout().lock();
    let mut failed = None;
    let mut ended_line = true;
    let mut bar = None;
    let turn = ask(&request, &mut |event| match event {
        Event::Prompt { done, total } => {
            if done < total && total - done > LONG && bar.is_none() {
                bar = Some(reading(total));
            }
            bar.iter().for_each(|bar: &ProgressBar| bar.set_position(done as u64));
        }
        Event::Text(text) => {
            bar.take().iter().for_each(ProgressBar::finish_and_clear);
            if as_json || failed.is_some() {
                return;
            }
            // A model must not command the terminal.
            let shown = if is_terminal { terminal::printable(text) } else { text.to_owned() };
            ended_line = shown.ends_with('\n');
            if let Err(error) = out.write_all(shown.as_bytes()).and_then(|()| out.flush()) {
                failed = Some(error);
                cancel.cancel();
            }
        }
        Event::Overflowing { policy, tokens } => {
            bar.take().iter().for_each(ProgressBar::finish_and_clear);
            if !as_json {
                let what = if policy == Overflow::Summarize { "; older turns are being summed up" } else { "" };
                aside(&format!("(the conversation is {tokens} tokens long now, which is too much{what})"));
            }
        }
        Event::Overflow(overflowed) if !as_json => aside(&told(overflowed)),
        _ => {}
    });
    bar.take().iter().for_each(ProgressBar::finish_and_clear);
    drop(guard);
    if let Some(error) = failed {
        return Err(error.into());
    }
    if !as_json && !ended_line {
        writeln!(out)?;
    }
    let turn = turn?;
    if as_json {
        writeln!(out, "{}", serde_json::to_string(&turn)?)?;
    } else if turn.text.is_empty() && turn.stop_reason != StopReason::Cancelled {
        writeln!(out)?;
    }
    out.flush()?;
    tracing::info!(
        reused = turn.tokens_reused,
        computed = turn.tokens_computed,
        generated = turn.tokens_generated,
        first_token = ?turn.first_token,
        per_token = ?turn.per_token,
        position = turn.position,
        stop_reason = turn.stop_reason.name(),
        "turn"
    );
    Ok(turn)
}

fn reading(total: usize) -> ProgressBar {
    let bar = ProgressBar::new(total as u64);
    let style = ProgressStyle::with_template("  reading {wide_bar} {pos}/{len} tokens {eta}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// What an overflow cost, for people.
fn told(overflowed: &Overflowed) -> String {
    let Overflowed { turns_dropped, tokens_before, tokens_after, summary, fallback, .. } = overflowed;
    let turns =
        if *turns_dropped == 1 { "the oldest turn".into() } else { format!("the {turns_dropped} oldest turns") };
    let sizes = format!("{tokens_before} tokens are now {tokens_after}");
    match (overflowed.policy, summary, fallback) {
        (Overflow::Summarize, Some(summary), _) => {
            format!("({turns} summed up, {sizes}: {})", terminal::printable(summary))
        }
        (_, _, Some(why)) => format!("({why}, so {turns} dropped; {sizes})"),
        _ => format!("({turns} dropped; {sizes})"),
    }
}

/// A remark on standard error.
fn aside(note: &str) {
    let (on, off) = if terminal::colours_on_stderr() { ("\x1b[2m", "\x1b[0m") } else { ("", "") };
    drop(writeln!(stderr(), "{on}{note}{off}"));
}

/// Says why an answer ended, where that is not plain to see.
pub(crate) fn explain(turn: &Turn, how_to_go_on: &str) {
    let note = match turn.stop_reason {
        StopReason::MaxTokens => format!("(cut after {} tokens; --max-tokens sets the limit)", turn.tokens_generated),
        StopReason::ContextFull => format!("(the context of {} tokens is full{how_to_go_on})", turn.context),
        StopReason::Cancelled => "(stopped)".to_owned(),
        _ => return,
    };
    aside(&note);
}
