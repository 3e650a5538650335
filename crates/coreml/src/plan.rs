//! Where Core ML means to run each operation (its `MLComputePlan`).

use serde::Serialize;

use crate::DeviceKind;

/// A plan for the compute units that were asked for. It is Core ML's intention, not a measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ComputePlan {
    /// The functions of the program, by name.
    pub functions: Vec<PlannedFunction>,
}

/// One function.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlannedFunction {
    /// Its name.
    pub name: String,
    /// Its operations in order, those of nested blocks after the operation that holds them.
    pub operations: Vec<PlannedOperation>,
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlannedOperation {
    /// The operation, without the prefix of its opset: `slice_update`.
    pub kind: String,
    /// Values that it gives.
    pub outputs: Vec<String>,
    /// The device it is meant for; none for operations that do not run, such as constants.
    pub preferred: Option<DeviceKind>,
    /// Devices that could run it.
    pub supported: Vec<DeviceKind>,
    /// Its share of the whole estimated cost, 0 to 1.
    pub cost: Option<f64>,
}

impl ComputePlan {
    /// The share of operations that are meant for a kind of device, 0 to 1, of those that run at all; 1 if none does.
    #[must_use]
    pub fn share(&self, device: DeviceKind) -> f64 {
        let run = || self.functions.iter().flat_map(|f| &f.operations).filter_map(|operation| operation.preferred);
        let (all, there) = (run().count(), run().filter(|&kind| kind == device).count());
        if all == 0 { 1.0 } else { there as f64 / all as f64 }
    }
}

/// The name of an operation without its opset: Core ML says `ios18.slice_update`.
#[cfg_attr(not(target_vendor = "apple"), allow(dead_code, reason = "Core ML's side asks for it"))]
pub(crate) fn plain_kind(kind: &str) -> &str {
    match kind.split_once('.') {
        Some((opset, rest)) if opset.starts_with("ios") || opset.starts_with("CoreML") => rest,
        _ => kind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_lose_their_opset_only() {
        let kinds = ["ios18.slice_update", "const", "my.op", "CoreML8.add"].map(plain_kind);
        assert_eq!(kinds, ["slice_update", "const", "my.op", "add"]);
    }
}
