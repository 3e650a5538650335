//! A placement from the program alone.

use std::collections::BTreeMap;

use anemone_convert::lint::Os;
use anemone_convert::lint::placement::{self, Device, Units};
use anemone_coreml::{ComputePlan, ComputeUnits, DeviceKind, PlannedFunction, PlannedOperation};
use anemone_mil::model::Model;

/// The units in the words of the rules, and the devices in ours.
const UNITS: [(ComputeUnits, Units); 4] = [
    (ComputeUnits::All, Units::All),
    (ComputeUnits::CpuAndNeuralEngine, Units::CpuAndNeuralEngine),
    (ComputeUnits::CpuAndGpu, Units::CpuAndGpu),
    (ComputeUnits::CpuOnly, Units::CpuOnly),
];
const DEVICES: [(Device, Option<DeviceKind>); 4] = [
    (Device::Nothing, None),
    (Device::Cpu, Some(DeviceKind::Cpu)),
    (Device::Gpu, Some(DeviceKind::Gpu)),
    (Device::NeuralEngine, Some(DeviceKind::NeuralEngine)),
];
/// The first system that has states.
const SYSTEM: Os = Os::Ios18;

/// What the rules expect, in the form of a plan.
#[must_use]
pub fn predicted(model: &Model, units: ComputeUnits) -> ComputePlan {
    let asked = UNITS.iter().find(|(ours, _)| *ours == units).expect("the table has every variant").1;
    let functions = model.program.functions.iter().map(|(name, function)| {
        let operations = placement::predict(model, name, asked, SYSTEM).into_iter().map(|prediction| {
            let op = &function.body.ops[prediction.op];
            let device = DEVICES.iter().find(|(theirs, _)| *theirs == prediction.device).and_then(|(_, ours)| *ours);
            PlannedOperation {
                kind: op.name_of_kind.clone(),
                outputs: op.outputs.iter().map(|&id| function.value(id).name.clone()).collect(),
                preferred: device,
                supported: device.into_iter().collect(),
                cost: None,
            }
        });
        PlannedFunction { name: name.clone(), operations: operations.collect() }
    });
    ComputePlan { functions: functions.collect() }
}

/// Why operations of a function are not expected on the Neural Engine, by the first value that each gives.
pub(super) fn reasons(model: &Model, function: &str) -> BTreeMap<String, String> {
    let Some(f) = model.program.functions.get(function) else { return BTreeMap::new() };
    let all = placement::predict(model, function, Units::CpuAndNeuralEngine, SYSTEM);
    let named = all.into_iter().filter(|prediction| !prediction.reason.is_empty()).map(|prediction| {
        let gives = f.body.ops[prediction.op].outputs.first().map(|&id| f.value(id).name.clone());
        (gives.unwrap_or_default(), prediction.reason)
    });
    named.collect()
}
