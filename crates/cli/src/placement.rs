//! Where the operations of a package run: Core ML's own plan where there is Core ML, a prediction from the program elsewhere.

mod parts;
mod predict;
mod print;

use std::collections::BTreeMap;

use anemone_coreml::{ComputePlan, ComputeUnits, DeviceKind, PlannedFunction, PlannedOperation};
use anemone_mil::model::Model;
use serde::Serialize;

use crate::text::printable;

pub use parts::{InParts, PartPlacement, Total};
pub use predict::predicted;
pub use print::{write_in_parts, write_report};

/// Where a placement is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Core ML's compute plan on this machine: its intention, not a measurement.
    ComputePlan,
    /// The rules that `anemone lint` has: nothing was asked of any hardware.
    Prediction,
}

/// Where the operations of a package run.
#[derive(Clone, Debug, Serialize)]
pub struct Placement {
    /// Where it is known from.
    pub source: Source,
    /// The units that were allowed.
    pub units: ComputeUnits,
    /// The functions, by name.
    pub functions: Vec<FunctionPlacement>,
}

/// Where the operations of one function run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FunctionPlacement {
    /// Its name.
    pub name: String,
    /// Operations that run at all: constants, and what follows from them, do not.
    pub operations: usize,
    /// How many run on each device.
    pub devices: BTreeMap<DeviceKind, usize>,
    /// The share of the Neural Engine, 0 to 1, by number of operations.
    pub neural_engine_share: f64,
    /// The same by Core ML's estimate of their cost, where it gives one.
    pub neural_engine_cost_share: Option<f64>,
    /// The operations that read or write states.
    pub state_operations: Vec<Line>,
    /// Operations that run elsewhere than on the Neural Engine.
    pub elsewhere: Vec<Line>,
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// The operation: `slice_update`.
    pub operation: String,
    /// The first value that it gives; empty if it gives none.
    pub gives: String,
    /// Where it runs.
    pub device: DeviceKind,
    /// Where it could.
    pub supported: Vec<DeviceKind>,
    /// Its share of the whole estimated cost.
    pub cost: Option<f64>,
    /// The likely reason why it does not run on the Neural Engine; empty if none is known.
    pub reason: String,
}

/// What touches states.
const STATE_OPERATIONS: [&str; 4] = ["read_state", "write_state", "coreml_update_state", "slice_update"];

impl Placement {
    /// Makes a report of a plan. Reasons for what is off the Neural Engine come from the program.
    #[must_use]
    pub fn of(source: Source, units: ComputeUnits, plan: &ComputePlan, model: &Model) -> Self {
        let functions = plan.functions.iter().map(|function| {
            let reasons = predict::reasons(model, &function.name);
            FunctionPlacement::of(function, &reasons)
        });
        Self { source, units, functions: functions.collect() }
    }

    /// The function with the smallest share of the Neural Engine.
    #[must_use]
    pub fn least(&self) -> Option<&FunctionPlacement> {
        self.functions.iter().min_by(|a, b| a.neural_engine_share.total_cmp(&b.neural_engine_share))
    }

    /// The smallest share of the Neural Engine among the functions.
    #[must_use]
    pub fn least_share(&self) -> f64 {
        self.least().map_or(1.0, |function| function.neural_engine_share)
    }

    /// What to do where that share is too small.
    #[must_use]
    pub fn way_out(&self) -> String {
        if !matches!(self.units, ComputeUnits::All | ComputeUnits::CpuAndNeuralEngine) {
            return format!("--compute-units {} leaves the Neural Engine out", self.units);
        }
        let Some(least) = self.least() else { return String::new() };
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        least.elsewhere.iter().for_each(|line| *kinds.entry(&line.operation).or_default() += 1);
        let mut kinds: Vec<_> = kinds.into_iter().collect();
        kinds.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        let told: Vec<String> = kinds.iter().take(3).map(|(kind, count)| format!("{count} × {kind}")).collect();
        let more = if kinds.len() > told.len() { " and others" } else { "" };
        format!(
            "of `{}`, {}{more} are off it. A model that is converted with `anemone convert --profile ane` has the most on it; \
             what is off there as well has its reason above, and `--list` names each operation",
            printable(&least.name),
            told.join(", ")
        )
    }
}

impl FunctionPlacement {
    /// Several that are called one after the other. Estimates of cost are shares of each, and are not joined.
    fn joined<'f>(name: String, functions: impl IntoIterator<Item = &'f Self>) -> Self {
        let mut all = Self { name, neural_engine_share: 1.0, ..Self::default() };
        for function in functions {
            all.operations += function.operations;
            function.devices.iter().for_each(|(&device, count)| *all.devices.entry(device).or_default() += count);
            all.state_operations.extend_from_slice(&function.state_operations);
            all.elsewhere.extend_from_slice(&function.elsewhere);
        }
        if all.operations > 0 {
            let there = all.devices.get(&DeviceKind::NeuralEngine).copied().unwrap_or(0);
            all.neural_engine_share = there as f64 / all.operations as f64;
        }
        all
    }

    fn of(function: &PlannedFunction, reasons: &BTreeMap<String, String>) -> Self {
        let runs = || function.operations.iter().filter_map(|operation| Some((operation, operation.preferred?)));
        let mut devices = BTreeMap::new();
        runs().for_each(|(_, device)| *devices.entry(device).or_default() += 1);
        let operations = runs().count();
        let on_engine = |device: DeviceKind| device == DeviceKind::NeuralEngine;
        let share = |there: f64, all: f64| if all > 0.0 { there / all } else { 1.0 };
        let there = runs().filter(|&(_, device)| on_engine(device)).count();
        let cost = |only: bool| -> f64 {
            runs().filter(|&(_, device)| !only || on_engine(device)).filter_map(|(operation, _)| operation.cost).sum()
        };
        let line = |(operation, device): (&PlannedOperation, DeviceKind)| {
            let gives = operation.outputs.first().cloned().unwrap_or_default();
            let reason = if on_engine(device) { None } else { reasons.get(&gives).cloned() };
            Line {
                operation: operation.kind.clone(),
                device,
                supported: operation.supported.clone(),
                cost: operation.cost,
                reason: reason.unwrap_or_default(),
                gives,
            }
        };
        let of_states = |(operation, _): &(&PlannedOperation, _)| STATE_OPERATIONS.contains(&operation.kind.as_str());
        Self {
            name: function.name.clone(),
            operations,
            devices,
            neural_engine_share: share(there as f64, operations as f64),
            neural_engine_cost_share: (cost(false) > 0.0).then(|| share(cost(true), cost(false))),
            state_operations: runs().filter(of_states).map(line).collect(),
            elsewhere: runs().filter(|&(_, device)| !on_engine(device)).map(line).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
