//! Core ML's compute plan.

use objc2::available;
use objc2::rc::Retained;
use objc2::runtime::{AnyObject, ProtocolObject};
use objc2_core_ml::{
    MLCPUComputeDevice, MLComputeDeviceProtocol, MLComputePlan, MLGPUComputeDevice, MLModelConfiguration,
    MLModelStructureProgramBlock, MLModelStructureProgramOperation, MLNeuralEngineComputeDevice,
};
use objc2_foundation::NSURL;

use super::wait;
use crate::plan::plain_kind;
use crate::{ComputePlan, Device, DeviceKind, Failure, PlannedFunction, PlannedOperation};

/// The kind of a device, by its class.
pub(super) fn device(device: &ProtocolObject<dyn MLComputeDeviceProtocol>) -> Device {
    let object: &AnyObject = device.as_ref();
    if let Some(engine) = object.downcast_ref::<MLNeuralEngineComputeDevice>() {
        // SAFETY: a getter.
        let cores = usize::try_from(unsafe { engine.totalCoreCount() }).ok();
        return Device { kind: DeviceKind::NeuralEngine, cores };
    }
    let kind = match () {
        () if object.downcast_ref::<MLGPUComputeDevice>().is_some() => DeviceKind::Gpu,
        () if object.downcast_ref::<MLCPUComputeDevice>().is_some() => DeviceKind::Cpu,
        () => DeviceKind::Other,
    };
    Device { kind, cores: None }
}

pub(super) fn load(url: &NSURL, configuration: &MLModelConfiguration) -> Result<ComputePlan, Failure> {
    if !available!(macos = 14.4, ios = 17.4) {
        return Err(Failure::new("anemone", 0, "compute plans need macOS 14.4 or iOS 17.4"));
    }
    let plan = wait::for_object::<MLComputePlan>(|handler| {
        // SAFETY: URL and configuration live for the call; Core ML copies the block, which owns all that it uses.
        unsafe { MLComputePlan::loadContentsOfURL_configuration_completionHandler(url, configuration, handler) }
    })?;
    // SAFETY: getters of the immutable structure of the plan.
    let functions = unsafe {
        let program = plan.modelStructure().program();
        program.ok_or_else(|| Failure::new("anemone", 0, "the package is no ML Program"))?.functions()
    };
    let (names, functions) = functions.to_vecs();
    let mut planned = Vec::new();
    for (name, function) in names.into_iter().zip(functions) {
        let mut operations = Vec::new();
        // SAFETY: a getter.
        let block = unsafe { function.block() };
        add(&plan, &block, &mut operations, 0);
        planned.push(PlannedFunction { name: name.to_string(), operations });
    }
    planned.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(ComputePlan { functions: planned })
}

/// Blocks in blocks are not followed further.
const MAX_DEPTH: usize = 16;

fn add(
    plan: &MLComputePlan,
    block: &MLModelStructureProgramBlock,
    operations: &mut Vec<PlannedOperation>,
    depth: usize,
) {
    // SAFETY: a getter.
    for operation in unsafe { block.operations() } {
        operations.push(one(plan, &operation));
        if depth < MAX_DEPTH {
            // SAFETY: a getter.
            unsafe { operation.blocks() }.iter().for_each(|inner| add(plan, &inner, operations, depth + 1));
        }
    }
}

fn one(plan: &MLComputePlan, operation: &MLModelStructureProgramOperation) -> PlannedOperation {
    // SAFETY: getters; the operation is one of this plan's structure, as the plan asks for.
    let (kind, outputs, usage, cost) = unsafe {
        (
            operation.operatorName().to_string(),
            operation.outputs(),
            plan.computeDeviceUsageForMLProgramOperation(operation),
            plan.estimatedCostOfMLProgramOperation(operation).map(|cost| cost.weight()),
        )
    };
    let kind_of = |d: &ProtocolObject<dyn MLComputeDeviceProtocol>| device(d).kind;
    let (preferred, supported) = match &usage {
        // SAFETY: getters.
        Some(usage) => unsafe { (Some(usage.preferredComputeDevice()), Some(usage.supportedComputeDevices())) },
        None => (None, None),
    };
    let preferred = preferred.map(|device: Retained<_>| kind_of(&device));
    let supported = supported.map_or_else(Vec::new, |all| all.iter().map(|device| kind_of(&device)).collect());
    // SAFETY: a getter.
    let outputs = outputs.iter().map(|output| unsafe { output.name() }.to_string()).collect();
    PlannedOperation { kind: plain_kind(&kind).to_owned(), outputs, preferred, supported, cost }
}
