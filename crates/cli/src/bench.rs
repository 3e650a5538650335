//! How fast a model is on this machine, by what it runs on: the table, the curve under load, and what keeping the cache saves.

mod measure;
mod print;
mod svg;

use anemone_coreml::ComputeUnits;
use serde::Serialize;

use crate::host::{Heat, Host};

pub use measure::{Plan, measure};
pub use print::write_table;
pub use svg::plot;

/// All that was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Bench {
    /// The model.
    pub model: String,
    /// The machine.
    pub machine: Host,
    /// What was done.
    pub plan: Plan,
    /// One for each thing that the model may run on.
    pub columns: Vec<Column>,
}

/// One thing that the model may run on.
#[derive(Clone, Debug, Serialize)]
pub struct Column {
    /// What it is called.
    pub subject: String,
    /// The units, for Core ML.
    pub units: Option<ComputeUnits>,
    /// What was measured, or why nothing was.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What was measured, or why nothing was.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Numbers.
    Measured(Box<Measured>),
    /// This machine has it not.
    Absent(String),
    /// It failed.
    Failed(String),
}

/// What one run measured. Times are in seconds.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// From the package to a runner that is ready, compiled packages found in the cache.
    pub load: f64,
    /// From an empty state to the logits after the prompt.
    pub first_token: f64,
    /// The middle of the times for one token under load.
    pub per_token_median: f64,
    /// 95 of 100 tokens are at least as fast.
    pub per_token_p95: f64,
    /// Tokens a second over the whole load.
    pub tokens_per_second: f64,
    /// The load in pieces, with the heat after each.
    pub curve: Vec<Point>,
    /// The most memory that the process held, in bytes.
    pub memory: Option<u64>,
    /// The energy of the load, in joules: that of the whole machine's processors, where the system tells it to anybody.
    pub energy: Option<f64>,
    /// Why there is no energy.
    pub energy_missing: Option<&'static str>,
    /// A conversation, turn by turn.
    pub turns: Vec<TurnTimes>,
}

/// A piece of the load.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// Tokens so far.
    pub tokens: usize,
    /// Seconds so far.
    pub seconds: f64,
    /// Tokens a second in this piece.
    pub tokens_per_second: f64,
    /// The heat after it.
    pub heat: Heat,
}

/// One turn of a conversation: the time to its first token.
#[derive(Clone, Debug, Serialize)]
pub struct TurnTimes {
    /// Tokens of the conversation before it.
    pub before: usize,
    /// Tokens of the turn.
    pub new: usize,
    /// With the cache kept: only the turn is read.
    pub kept: f64,
    /// Without: the whole conversation is read again.
    pub again: f64,
}

#[cfg(test)]
mod tests;
