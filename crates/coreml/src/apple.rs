//! Core ML itself. Nothing is decided here: each call of [`Framework`] becomes the calls of Objective-C that it names.
//!
//! # Why this is sound
//!
//! - Every call that makes or gives Objective-C objects runs in a pool of its own, so nothing gathers in a loop of
//!   predictions.
//! - `MLModel` wants its calls one after the other, on any thread: `&mut` gives that, and [`AppleModel`] says so.
//! - Names, shapes and element types are checked by the callers beforehand, since Core ML answers mistakes with exceptions,
//!   which end the process: they are not caught.
//! - Arrays are seen only inside the closures that Core ML calls; a panic in one is carried around the frames between.
#![allow(unsafe_code, reason = "every method of Core ML's bindings is unsafe to call")]

mod array;
mod failure;
mod memory;
mod plan;
mod wait;

use std::fmt;
use std::path::{Path, PathBuf};

use objc2::rc::{Retained, autoreleasepool};
use objc2::runtime::{AnyObject, ProtocolObject};
use objc2::{AnyThread, available};
use objc2_core_ml::{
    MLComputeUnits, MLDictionaryFeatureProvider, MLFeatureDescription, MLFeatureProvider, MLFeatureValue, MLModel,
    MLModelConfiguration, MLMultiArray, MLOptimizationHints, MLPredictionOptions, MLReshapeFrequencyHint,
    MLSpecializationStrategy, MLState,
};
use objc2_foundation::{NSDictionary, NSProcessInfo, NSString, NSURL};

use crate::{
    ComputePlan, Conditions, Configuration, CoreMlError, Device, ElementType, Failure, Framework, Port, Ports, Result,
    Thermal, View, ViewMut, os,
};

/// Apple's Core ML. It has no content: what is loaded belongs to whoever loads it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Apple;

/// A loaded function.
#[derive(Debug)]
pub struct AppleModel(Retained<MLModel>);

// SAFETY: an `MLModel` may be used from any thread as long as its calls are serialised (Apple's documentation of the class
// asks for that, or for one instance a thread). The object is reachable through this value alone, whose calls that are more
// than reading take `&mut`, and reading (`modelDescription`) gives an immutable object.
unsafe impl Send for AppleModel {}

/// Arrays and the objects around them, made once for all predictions of a function.
pub struct AppleCall {
    inputs: Vec<Retained<MLMultiArray>>,
    provider: Retained<MLDictionaryFeatureProvider>,
    options: Retained<MLPredictionOptions>,
    outputs: Option<Retained<ProtocolObject<dyn MLFeatureProvider>>>,
}

impl fmt::Debug for AppleCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppleCall").field("inputs", &self.inputs).finish_non_exhaustive()
    }
}

// SAFETY: the objects are reachable through this value alone, have no tie to the thread that made them, and are used by one
// thread at a time: whatever changes them takes `&mut`.
unsafe impl Send for AppleCall {}

/// What stays between predictions.
#[derive(Debug)]
pub struct AppleState(Retained<MLState>);

fn url(path: &Path) -> Result<Retained<NSURL>, Failure> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    NSURL::from_file_path(&absolute)
        .ok_or_else(|| Failure::new("anemone", 0, format!("{}: no path for Core ML", path.display())))
}

fn configuration(wanted: &Configuration) -> Retained<MLModelConfiguration> {
    // SAFETY: plain setters of an object that is new and nobody else's; the values are those of Apple's enumerations. The
    // newer ones are called only where the system has them.
    unsafe {
        let configuration = MLModelConfiguration::new();
        configuration.setComputeUnits(MLComputeUnits(wanted.units.raw()));
        configuration.setAllowLowPrecisionAccumulationOnGPU(wanted.low_precision_on_gpu);
        if available!(macos = 14.4, ios = 17.4) {
            let hints = MLOptimizationHints::new();
            hints.setReshapeFrequency(MLReshapeFrequencyHint(wanted.reshape.raw()));
            if available!(macos = 15.0, ios = 18.0) {
                hints.setSpecializationStrategy(MLSpecializationStrategy(wanted.specialization.raw()));
            }
            configuration.setOptimizationHints(&hints);
        }
        if available!(macos = 15.0, ios = 18.0) {
            let name = wanted.function.as_deref().map(NSString::from_str);
            configuration.setFunctionName(name.as_deref());
        }
        configuration
    }
}

/// The ports of a dictionary of descriptions; those that are no arrays of a known type are left out.
fn ports(descriptions: &NSDictionary<NSString, MLFeatureDescription>) -> Vec<Port> {
    let (names, all) = descriptions.to_vecs();
    let port = |(name, description): (Retained<NSString>, Retained<MLFeatureDescription>)| {
        // SAFETY: getters of immutable objects; the constraint of a kind that the feature is not is nil.
        let (shape, kind) = unsafe {
            match description.multiArrayConstraint() {
                Some(constraint) => (constraint.shape(), constraint.dataType()),
                None if available!(macos = 15.0, ios = 18.0) => {
                    let constraint = description.stateConstraint()?;
                    (constraint.bufferShape(), constraint.dataType())
                }
                None => return None,
            }
        };
        Some(Port::new(name.to_string(), ElementType::from_raw(kind.0)?, array::numbers(&shape)?))
    };
    names.into_iter().zip(all).filter_map(port).collect()
}

impl Framework for Apple {
    type Model = AppleModel;
    type Call = AppleCall;
    type State = AppleState;

    fn check(&self) -> Result<()> {
        if available!(macos = 15.0, ios = 18.0) {
            return Ok(());
        }
        let found = NSProcessInfo::processInfo().operatingSystemVersionString().to_string();
        Err(CoreMlError::System { feature: "state in Core ML", expected: "macOS 15 or iOS 18, or later", found })
    }

    fn os_build(&self) -> String {
        os::build(&NSProcessInfo::processInfo().operatingSystemVersionString().to_string())
    }

    fn devices(&self) -> Vec<Device> {
        if !available!(macos = 14.0, ios = 17.0) {
            return Vec::new();
        }
        autoreleasepool(|_| {
            // SAFETY: a class method without arguments, which this system has.
            let all = unsafe { MLModel::availableComputeDevices() };
            all.iter().map(|device| plan::device(&device)).collect()
        })
    }

    fn conditions(&self) -> Conditions {
        let process = NSProcessInfo::processInfo();
        Conditions {
            thermal: Thermal::from_raw(process.thermalState().0),
            low_power: process.isLowPowerModeEnabled(),
            memory: memory::pressure(),
        }
    }

    fn compile(&self, package: &Path) -> Result<PathBuf, Failure> {
        autoreleasepool(|_| {
            let url = url(package)?;
            let made = wait::for_object::<NSURL>(|handler| {
                // SAFETY: the URL lives for the call; Core ML copies the block, which owns all that it uses.
                unsafe { MLModel::compileModelAtURL_completionHandler(&url, handler) }
            })?;
            made.to_file_path()
                .ok_or_else(|| Failure::new("anemone", 0, "Core ML compiled to something that is no file"))
        })
    }

    fn load(&self, compiled: &Path, wanted: &Configuration) -> Result<AppleModel, Failure> {
        autoreleasepool(|_| {
            let (url, configuration) = (url(compiled)?, configuration(wanted));
            // SAFETY: both objects live for the call; the configuration is not changed afterwards.
            let model = unsafe { MLModel::modelWithContentsOfURL_configuration_error(&url, &configuration) };
            model.map(AppleModel).map_err(|error| failure::of(&error))
        })
    }

    fn ports(&self, model: &AppleModel) -> Ports {
        autoreleasepool(|_| {
            // SAFETY: getters of an immutable description; states are asked for only where the system has them.
            unsafe {
                let description = model.0.modelDescription();
                let stateful = available!(macos = 15.0, ios = 18.0);
                Ports {
                    inputs: ports(&description.inputDescriptionsByName()),
                    outputs: ports(&description.outputDescriptionsByName()),
                    states: if stateful { ports(&description.stateDescriptionsByName()) } else { Vec::new() },
                }
            }
        })
    }

    fn new_state(&self, model: &AppleModel) -> Result<AppleState, Failure> {
        // SAFETY: the callers have checked that the system has states; the state owns itself.
        autoreleasepool(|_| Ok(AppleState(unsafe { model.0.newState() })))
    }

    fn read_state(&self, state: &AppleState, name: &str, visit: &mut dyn FnMut(View<'_>) -> Result<()>) -> Result<()> {
        array::with_state(&state.0, name, |array| array::read(array, &mut *visit))
    }

    fn write_state(
        &self,
        state: &mut AppleState,
        name: &str,
        visit: &mut dyn FnMut(ViewMut<'_>) -> Result<()>,
    ) -> Result<()> {
        array::with_state(&state.0, name, |array| array::write(array, &mut *visit))
    }

    fn prepare(&self, _: &AppleModel, inputs: &[Port], outputs: &[Port]) -> Result<AppleCall, Failure> {
        autoreleasepool(|_| {
            let arrays = inputs.iter().map(array::new).collect::<Result<Vec<_>, _>>()?;
            // SAFETY: the feature values keep the arrays, which are written between predictions only.
            let values = arrays.iter().map(|array| unsafe { MLFeatureValue::featureValueWithMultiArray(array) });
            let values: Vec<Retained<AnyObject>> = values.map(Into::into).collect();
            let dictionary = dictionary(inputs, &values);
            let provider = MLDictionaryFeatureProvider::alloc();
            // SAFETY: the dictionary holds feature values by name, as the class asks for.
            let provider = unsafe { MLDictionaryFeatureProvider::initWithDictionary_error(provider, &dictionary) };
            let provider = provider.map_err(|error| failure::of(&error))?;
            let rooms = outputs.iter().map(|port| array::new(port).map(Into::into)).collect::<Result<Vec<_>, _>>()?;
            // SAFETY: the rooms are arrays of the types and shapes that the model's description gives for these outputs.
            let options = unsafe {
                let options = MLPredictionOptions::new();
                options.setOutputBackings(&self::dictionary(outputs, &rooms));
                options
            };
            Ok(AppleCall { inputs: arrays, provider, options, outputs: None })
        })
    }

    fn write_input(
        &self,
        call: &mut AppleCall,
        index: usize,
        visit: &mut dyn FnMut(ViewMut<'_>) -> Result<()>,
    ) -> Result<()> {
        array::write(&call.inputs[index], visit)
    }

    fn predict(
        &self,
        model: &mut AppleModel,
        call: &mut AppleCall,
        state: Option<&mut AppleState>,
    ) -> Result<(), Failure> {
        autoreleasepool(|_| {
            // What the last prediction gave is let go first, so that its memory can be used again.
            call.outputs = None;
            let provider = ProtocolObject::from_ref(&*call.provider);
            // SAFETY: `&mut` on model, call and state makes this the only prediction with any of them, as Core ML asks for;
            // arrays of inputs and of the state are not seen by anybody while it runs.
            let outputs = unsafe {
                match state {
                    Some(state) => {
                        model.0.predictionFromFeatures_usingState_options_error(provider, &state.0, &call.options)
                    }
                    None => model.0.predictionFromFeatures_options_error(provider, &call.options),
                }
            };
            call.outputs = Some(outputs.map_err(|error| failure::of(&error))?);
            Ok(())
        })
    }

    fn read_output(&self, call: &AppleCall, name: &str, visit: &mut dyn FnMut(View<'_>) -> Result<()>) -> Result<()> {
        autoreleasepool(|_| {
            let value = call.outputs.as_ref().and_then(|outputs| {
                // SAFETY: getters of the result of a prediction that has ended.
                unsafe { outputs.featureValueForName(&NSString::from_str(name))?.multiArrayValue() }
            });
            match value {
                Some(array) => array::read(&array, visit),
                None => Err(array::absent("output", name)),
            }
        })
    }

    fn plan(&self, compiled: &Path, wanted: &Configuration) -> Result<ComputePlan, Failure> {
        autoreleasepool(|_| plan::load(&*url(compiled)?, &configuration(wanted)))
    }
}

/// Objects by the names of ports.
fn dictionary(ports: &[Port], objects: &[Retained<AnyObject>]) -> Retained<NSDictionary<NSString, AnyObject>> {
    let names: Vec<Retained<NSString>> = ports.iter().map(|port| NSString::from_str(&port.name)).collect();
    let names: Vec<&NSString> = names.iter().map(|name| &**name).collect();
    NSDictionary::from_retained_objects(&names, objects)
}
