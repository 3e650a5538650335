//! What a package is and what it costs, for people and for JSON.

use anemone_coreml::ComputeUnits;
use anemone_cpu::{Note, StateLayout};
use anemone_mil::types::elements;
use serde::Serialize;

use super::call::PlannedCall;
use crate::step::{ReadyCall, ReadyStep};

/// What a package is and what it costs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RunnerInfo {
    /// The model's name: that of the converted folder's manifest, or of the package.
    pub name: String,
    /// The runtime: `cpu` or `coreml`.
    pub backend: String,
    /// The units that Core ML may use.
    pub units: Option<ComputeUnits>,
    /// The interface that was recognized: `anemone`, `anemone-io`, `causal-mask`, `token-position` or `parts`.
    pub signature: &'static str,
    /// Packages that the model is made of.
    pub parts: usize,
    /// How many tokens a state holds.
    pub context: usize,
    /// How many logits there are.
    pub vocabulary: usize,
    /// The calls that prompts and answers are split into, by width.
    pub calls: Vec<CallInfo>,
    /// The states of one conversation.
    pub states: Vec<StateInfo>,
    /// Bytes of all states of one conversation.
    pub state_bytes: u64,
    /// Bytes of the package's weight files.
    pub weight_bytes: u64,
    /// Threads that share the work.
    pub threads: usize,
    /// What costs more than it should, such as copies of states, one sentence each.
    pub notes: Vec<String>,
}

/// One way in which a function is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CallInfo {
    /// The function.
    pub function: String,
    /// Tokens that a call takes.
    pub width: usize,
    /// The fewest tokens that it computes. Fewer than the width: any number in between. Else a call of fewer tokens
    /// is filled up.
    pub narrowest: usize,
    /// Bytes of temporary tensors that a run takes.
    pub temporary_bytes: u64,
}

/// One state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StateInfo {
    /// Its name.
    pub name: String,
    /// Its shape; the last axis but one is the position.
    pub shape: Vec<usize>,
    /// Bytes that it takes.
    pub bytes: u64,
}

impl CallInfo {
    pub(super) fn of(step: &ReadyStep<PlannedCall>) -> Self {
        let bytes = step.calls.iter().map(|call| call.plan().temporary_bytes() as u64).sum();
        let (function, width) = (step.calls[0].function().to_owned(), step.width());
        Self { function, width, narrowest: step.fewest().unwrap_or(width), temporary_bytes: bytes }
    }
}

/// The states of a layout, with the names that they have there.
pub(super) fn states(layout: &StateLayout) -> impl Iterator<Item = StateInfo> {
    layout.states.iter().map(|s| StateInfo {
        name: s.name.clone(),
        shape: s.shape.to_vec(),
        bytes: elements(&s.shape) as u64 * 2,
    })
}

/// What costs more than it should, one sentence for each call and kind.
pub(super) fn notes(steps: &[ReadyStep<PlannedCall>]) -> Vec<String> {
    let mut notes = Vec::new();
    for call in steps.iter().flat_map(|step| &step.calls) {
        let (place, width, plan) = (call.place(), call.width(), call.plan());
        let copies = plan.notes().iter().filter_map(|note| match note {
            Note::StateCopied { place, elements, .. } => Some((place, elements * 2)),
            Note::Expanded { .. } => None,
        });
        if let Some((count, bytes, first)) = total(copies) {
            notes.push(format!(
                "{place}, {width} tokens a call: states are copied {count} times, {bytes} bytes in all, first for {first}"
            ));
        }
    }
    // The calls share their constants.
    let first = steps.first().into_iter().flat_map(|step| &step.calls);
    let expanded = first.flat_map(|call| call.plan().notes()).filter_map(|note| match note {
        Note::Expanded { place, bytes, .. } => Some((place, *bytes)),
        Note::StateCopied { .. } => None,
    });
    if let Some((count, bytes, place)) = total(expanded) {
        notes.push(format!("{count} constants are kept unpacked, {bytes} bytes in all, the first for {place}"));
    }
    notes
}

/// How many there are, their bytes, and the first.
fn total<'n>(all: impl Iterator<Item = (&'n String, usize)>) -> Option<(usize, usize, &'n String)> {
    all.fold(None, |sum, (place, bytes)| {
        let (count, before, first) = sum.unwrap_or((0, 0, place));
        Some((count + 1, before + bytes, first))
    })
}
