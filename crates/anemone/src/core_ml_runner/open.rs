//! From a path to functions that Core ML has loaded.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anemone_coreml::{
    CompileCache, ComputeUnits, Configuration, CoreMlError, DeviceKind, Framework, Model, ModelOptions, Port, Progress,
    Specialization,
};
use anemone_package::Package;
use anemone_package::bundle::digest_of_parts;

use super::call::LoadedCall;
use super::{CoreMlRunner, Part};
use crate::location::Location;
use crate::package_runner::{claimed, name_in_parts, program, usable};
use crate::signature::{Call, HostCache, Recognized};
use crate::step::ReadyStep;
use crate::{Backend, CacheLayout, CacheTensor, CallInfo, Error, Result, RunnerInfo, StateInfo};

/// How a package is opened with Core ML.
pub struct CoreMlOptions<'t> {
    /// The units that Core ML may use.
    pub units: ComputeUnits,
    /// What to prepare for.
    pub specialization: Specialization,
    /// The folder that keeps compiled packages.
    pub compiled: PathBuf,
    /// Is told while the package is compiled, which takes minutes the first time.
    pub tell: &'t mut dyn FnMut(Progress),
}

impl fmt::Debug for CoreMlOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoreMlOptions")
            .field("units", &self.units)
            .field("compiled", &self.compiled)
            .finish_non_exhaustive()
    }
}

impl<F: Framework> CoreMlRunner<F> {
    /// Opens a converted folder or a package: compiles it (or finds it compiled), and loads its functions.
    ///
    /// # Errors
    /// As [`PackageRunner::open`](crate::PackageRunner::open) for what is wrong with the package; [`Error::CoreMl`] for what
    /// Core ML refuses.
    pub fn open(framework: &Arc<F>, path: &Path, options: &mut CoreMlOptions<'_>) -> Result<Self> {
        Self::open_at(framework, &Location::find(path)?, options)
    }

    pub(crate) fn open_at(framework: &Arc<F>, location: &Location, options: &mut CoreMlOptions<'_>) -> Result<Self> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::CoreMl { path, source: Box::new(source) }
        };
        framework.check().map_err(failed(location.package()))?;
        let mut digests = claimed(location)?.unwrap_or_default();
        let (mut models, mut weight_bytes) = (Vec::new(), 0);
        for (part, path) in location.parts.iter().enumerate() {
            let package = Package::open(path).map_err(|e| program(path, e))?;
            if digests.len() <= part {
                digests.push(package.digest().map_err(|e| program(path, e))?);
            }
            models.push(anemone_mil::load_package(&package).map_err(|e| program(path, e))?);
            weight_bytes += package.weight_bytes().map_err(|e| program(path, e))?;
        }
        let owner = digest_of_parts(&digests);
        let Recognized { name: signature, steps: wanted } = usable(location, &models)?;
        let configuration =
            Configuration { units: options.units, specialization: options.specialization, ..Configuration::default() };
        let cache = CompileCache::new(&options.compiled);
        let (mut parts, mut states, mut places) = (Vec::new(), Vec::new(), Vec::new());
        let mut functions: Vec<Vec<String>> = Vec::new();
        for (part, path) in location.parts.iter().enumerate() {
            let compiled = cache.get(&**framework, path, &digests[part], options.units, options.tell);
            let compiled = compiled.map_err(failed(path))?;
            let calls = || wanted.iter().filter_map(|step| step.calls.get(part));
            let mut names: Vec<String> = Vec::new();
            for call in calls() {
                if !names.contains(&call.function) {
                    names.push(call.function.clone());
                }
            }
            let named = models[part].default_function.is_some();
            let functions_named = if named { names.clone() } else { Vec::new() };
            let load = ModelOptions { configuration: configuration.clone(), functions: functions_named, owner };
            let model = Model::load(framework, &compiled.path, &load).map_err(failed(path))?;
            let call = calls().next().expect("each part has a call of one token");
            let caches = host_caches(&model, call);
            let halves = |port: &Port| StateInfo {
                name: port.name.clone(),
                shape: port.shape.clone(),
                bytes: port.elements().unwrap_or(0) as u64 * port.element.bytes() as u64,
            };
            let kept = model.states().iter().map(halves).chain(caches.iter().map(|tensor| StateInfo {
                name: tensor.name.clone(),
                shape: tensor.shape.clone(),
                bytes: tensor.shape.iter().product::<usize>() as u64 * 2,
            }));
            for mut state in kept {
                places.push((part, state.name.clone()));
                state.name = name_in_parts(location.parts.len(), part, &state.name);
                states.push(state);
            }
            functions.push(names);
            parts.push(Part { place: (compiled.path, configuration.clone()), model, caches });
        }
        let mut steps = Vec::new();
        for step in &wanted {
            let mut calls = Vec::new();
            for (part, call) in step.calls.iter().enumerate() {
                let same = wanted.iter().filter_map(|s| s.calls.get(part)).filter(|c| c.function == call.function);
                let several = call.varying.is_some() || same.count() > 1;
                let index = functions[part].iter().position(|name| *name == call.function).expect("listed above");
                let fit = LoadedCall::new(call.clone(), index, several, &parts[part].model.functions()[index]);
                calls.push(fit.map_err(|problem| {
                    let (path, function) = (location.parts[part].clone(), call.function.clone());
                    Error::Interface { path, function, problem }
                })?);
            }
            steps.push(ReadyStep { logits: calls.len() == location.parts.len(), calls });
        }
        let (context, vocabulary) = steps[0].calls[steps[0].calls.len() - 1].sizes();
        let calls = steps.iter().map(|step| {
            let function = step.calls[0].name().to_owned();
            CallInfo { function, width: step.width(), narrowest: step.width(), temporary_bytes: 0 }
        });
        let info = RunnerInfo {
            name: location.name(),
            backend: Backend::CoreMl.to_string(),
            units: Some(options.units),
            signature,
            parts: parts.len(),
            context,
            vocabulary,
            calls: calls.collect(),
            state_bytes: states.iter().map(|s: &StateInfo| s.bytes).sum(),
            states,
            weight_bytes,
            threads: 0,
            notes: Vec::new(),
        };
        let cache = layout(owner, context, &info.states);
        Ok(Self { framework: Arc::clone(framework), parts, steps, cache, places, context, vocabulary, info })
    }

    /// The share of the operations that Core ML means to run on the Neural Engine, 0 to 1, of those that run at all.
    ///
    /// # Errors
    /// [`Error::CoreMl`] if Core ML makes no plan.
    pub fn neural_engine_share(&self) -> Result<f64> {
        // Of parts the least share: each of them must run there.
        let mut least = 1.0f64;
        for Part { place: (path, configuration), .. } in &self.parts {
            let plan = self.framework.plan(path, configuration).map_err(|failure| Error::CoreMl {
                path: path.clone(),
                source: Box::new(CoreMlError::Failed { operation: "asking for the compute plan".to_owned(), failure }),
            })?;
            least = least.min(plan.share(DeviceKind::NeuralEngine));
        }
        Ok(least)
    }
}

/// The caches that a call takes as inputs, as tensors that the host keeps.
fn host_caches<F: Framework>(model: &Model<F>, call: &Call) -> Vec<CacheTensor> {
    let inputs = || model.functions().iter().flat_map(|function| &function.ports().inputs);
    let tensor = |cache: &HostCache| {
        let shape = &inputs().find(|port| port.name == cache.input)?.shape;
        CacheTensor::of_halves(&cache.input, shape, *shape.iter().rev().nth(1)?)
    };
    call.caches.iter().filter_map(tensor).collect()
}

/// How the cache lies in states of (…, context, head dim); none if it lies otherwise.
fn layout(package: [u8; 32], context: usize, states: &[StateInfo]) -> Option<CacheLayout> {
    let tensor = |state: &StateInfo| {
        let length = *state.shape.iter().rev().nth(1)?;
        CacheTensor::of_halves(&state.name, &state.shape, length).filter(|tensor| tensor.axis + 2 == state.shape.len())
    };
    let tensors = states.iter().map(tensor).collect::<Option<Vec<_>>>()?;
    Some(CacheLayout { package, context, tensors })
}
