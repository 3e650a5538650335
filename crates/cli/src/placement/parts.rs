//! The placement of a model in parts: of each, and of a call through all of them.

use std::collections::BTreeMap;

use anemone::ChainStep;
use anemone_coreml::{ComputeUnits, DeviceKind};
use serde::Serialize;

use super::{FunctionPlacement, Placement, Source};

/// Where the operations of a model in parts run.
#[derive(Clone, Debug, Serialize)]
pub struct InParts {
    /// Where it is known from.
    pub source: Source,
    /// The units that were allowed.
    pub units: ComputeUnits,
    /// The parts, in the order in which they run.
    pub parts: Vec<PartPlacement>,
    /// Of the calls through all of them.
    pub total: Vec<Total>,
}

/// Where the operations of one part run.
#[derive(Clone, Debug, Serialize)]
pub struct PartPlacement {
    /// Its name.
    pub name: String,
    /// Its functions, by name.
    pub functions: Vec<FunctionPlacement>,
}

/// Where the operations of a call through all parts run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Total {
    /// What is called, in words.
    pub call: String,
    /// Operations that run at all.
    pub operations: usize,
    /// How many run on each device.
    pub devices: BTreeMap<DeviceKind, usize>,
    /// The share of the Neural Engine, 0 to 1, by number of operations.
    pub neural_engine_share: f64,
}

impl InParts {
    /// Puts the placements of parts together; and the whole model's, whose functions are the calls through all parts. `steps`
    /// say which functions follow each other; without any, all functions count together.
    ///
    /// # Panics
    /// If there are no parts.
    #[must_use]
    pub fn of(parts: Vec<(String, Placement)>, steps: &[ChainStep]) -> (Self, Placement) {
        let (source, units) = parts.first().map(|(_, first)| (first.source, first.units)).expect("a model has parts");
        let function = |part: usize, name: &str| parts[part].1.functions.iter().find(|f| f.name == name);
        let mut calls: Vec<FunctionPlacement> = steps
            .iter()
            .map(|step| {
                let called = step.calls.iter().enumerate().filter_map(|(part, call)| function(part, &call.function));
                let tokens = if step.tokens == 1 { "1 token".to_owned() } else { format!("{} tokens", step.tokens) };
                FunctionPlacement::joined(format!("{tokens} a call"), called)
            })
            .collect();
        if calls.is_empty() {
            let all = parts.iter().flat_map(|(_, placement)| &placement.functions);
            calls.push(FunctionPlacement::joined("all functions".to_owned(), all));
        }
        let total = calls.iter().map(|call| Total {
            call: call.name.clone(),
            operations: call.operations,
            devices: call.devices.clone(),
            neural_engine_share: call.neural_engine_share,
        });
        let total = total.collect();
        let whole = Placement { source, units, functions: calls };
        let parts = parts.into_iter().map(|(name, placement)| PartPlacement { name, functions: placement.functions });
        (Self { source, units, parts: parts.collect(), total }, whole)
    }
}
