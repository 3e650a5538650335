//! What turns cost.

use std::time::Duration;

use anemone::Turn;
use anemone_cli::units::count;
use serde_json::{Value, json};

use super::context;
use crate::answer::Conversation;

/// The account of a conversation.
#[derive(Default)]
pub(super) struct Stats {
    last: Option<Turn>,
    turns: usize,
    reused: usize,
    computed: usize,
    generated: usize,
    drafted: usize,
    accepted: usize,
}

impl Stats {
    pub(super) fn add(&mut self, turn: &Turn) {
        self.turns += 1;
        self.reused += turn.tokens_reused;
        self.computed += turn.tokens_computed;
        self.generated += turn.tokens_generated;
        self.drafted += turn.tokens_drafted;
        self.accepted += turn.tokens_accepted;
        self.last = Some(turn.clone());
    }

    pub(super) fn turns(&self) -> usize {
        self.turns
    }

    /// The same for programs.
    pub(super) fn object(&self, session: &Conversation) -> Value {
        json!({
            "event": "stats",
            "turns": self.turns,
            "tokens_reused": self.reused,
            "tokens_computed": self.computed,
            "tokens_generated": self.generated,
            "tokens_drafted": self.drafted,
            "tokens_accepted": self.accepted,
            "last_turn": self.last,
            "position": session.position(),
            "context": session.context(),
        })
    }

    /// In words.
    pub(super) fn text(&self, session: &Conversation) -> String {
        let place = match session.usage() {
            Ok(usage) => {
                let (context, share) = (count(usage.context as u64), 100 * usage.used() / usage.context.max(1));
                format!("  context       of {context} tokens {} ({share} %)", context::taken(&usage))
            }
            Err(error) => format!("  context       {error}"),
        };
        let Some(turn) = &self.last else { return place };
        let tokens = |reused: usize, computed: usize, generated: usize| {
            let [reused, computed, generated] = [reused, computed, generated].map(|n| count(n as u64));
            format!("{reused} tokens reused from the cache, {computed} computed, {generated} generated")
        };
        let rate = if turn.per_token > Duration::ZERO {
            format!(", then {} for each ({:.1} a second)", ms(turn.per_token), 1.0 / turn.per_token.as_secs_f64())
        } else {
            String::new()
        };
        let guessed = match self.drafted {
            0 => String::new(),
            drafted => format!(
                "\n  guesses       {} tokens drafted, {} of them accepted",
                count(drafted as u64),
                count(self.accepted as u64)
            ),
        };
        format!(
            "  last turn     {}\n                first token after {}{rate}; ended by {}\n  {:<13} {}{guessed}\n{place}",
            tokens(turn.tokens_reused, turn.tokens_computed, turn.tokens_generated),
            ms(turn.first_token),
            turn.stop_reason.name(),
            format!("{} turn{}", self.turns, if self.turns == 1 { "" } else { "s" }),
            tokens(self.reused, self.computed, self.generated),
        )
    }
}

fn ms(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1000.0)
}
