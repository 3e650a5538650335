//! From a path to functions that Core ML has loaded.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anemone_coreml::{
    CompileCache, ComputeUnits, Configuration, CoreMlError, DeviceKind, Framework, Model, ModelOptions, Progress,
    Specialization,
};
use anemone_mil::model::Model as Program;
use anemone_package::Package;

use super::CoreMlRunner;
use super::call::LoadedCall;
use crate::location::Location;
use crate::package_runner::{claimed, program};
use crate::signature::{Call, recognize, unwritten_state};
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
        let path = &location.package;
        let failed = |source| Error::CoreMl { path: path.clone(), source: Box::new(source) };
        framework.check().map_err(failed)?;
        let package = Package::open(path).map_err(|e| program(location, e))?;
        let claimed = location.manifest.as_ref().map(|manifest| claimed(location, manifest)).transpose()?;
        let owner = claimed.map_or_else(|| package.digest().map_err(|e| program(location, e)), Ok)?;
        let model = anemone_mil::load_package(&package).map_err(|e| program(location, e))?;
        let (signature, calls) = usable(path, &model)?;
        let cache = CompileCache::new(&options.compiled);
        let compiled = cache.get(&**framework, path, &owner, options.units, options.tell).map_err(failed)?;
        let mut functions: Vec<String> = Vec::new();
        for call in &calls {
            if !functions.contains(&call.function) {
                functions.push(call.function.clone());
            }
        }
        let named = model.default_function.is_some();
        let configuration =
            Configuration { units: options.units, specialization: options.specialization, ..Configuration::default() };
        let wanted =
            ModelOptions { configuration, functions: if named { functions.clone() } else { Vec::new() }, owner };
        let loaded = Model::load(framework, &compiled.path, &wanted).map_err(failed)?;
        let mut fitted = Vec::new();
        let several =
            |call: &Call| call.varying.is_some() || calls.iter().filter(|c| c.function == call.function).count() > 1;
        let several: Vec<bool> = calls.iter().map(several).collect();
        for (call, several) in calls.into_iter().zip(several) {
            let index = functions.iter().position(|name| *name == call.function).expect("listed above");
            let function = call.function.clone();
            let fit = LoadedCall::new(call, index, several, &loaded.functions()[index]);
            fitted.push(fit.map_err(|problem| Error::Interface { path: path.clone(), function, problem })?);
        }
        let states = loaded.states().iter().map(|port| StateInfo {
            name: port.name.clone(),
            shape: port.shape.clone(),
            bytes: port.elements().unwrap_or(0) as u64 * port.element.bytes() as u64,
        });
        let states: Vec<StateInfo> = states.collect();
        let mut weight_bytes = 0;
        for name in package.weight_file_names() {
            weight_bytes += package.weight_file(name).map_err(|e| program(location, e))?.len() as u64;
        }
        let first = &fitted[0];
        let (context, vocabulary) = first.sizes();
        let info = RunnerInfo {
            name: location.name(),
            backend: Backend::CoreMl.to_string(),
            units: Some(options.units),
            signature,
            context,
            vocabulary,
            calls: fitted
                .iter()
                .map(|c| CallInfo { function: c.name().to_owned(), width: c.width(), temporary_bytes: 0 })
                .collect(),
            state_bytes: states.iter().map(|s| s.bytes).sum(),
            states,
            weight_bytes,
            threads: 0,
            notes: Vec::new(),
        };
        let cache = layout(owner, context, &info.states);
        let place = (compiled.path, wanted.configuration);
        Ok(Self {
            framework: Arc::clone(framework),
            place,
            model: loaded,
            calls: fitted,
            cache,
            context,
            vocabulary,
            info,
        })
    }

    /// The share of the operations that Core ML means to run on the Neural Engine, 0 to 1, of those that run at all.
    ///
    /// # Errors
    /// [`Error::CoreMl`] if Core ML makes no plan.
    pub fn neural_engine_share(&self) -> Result<f64> {
        let (path, configuration) = &self.place;
        let plan = self.framework.plan(path, configuration).map_err(|failure| Error::CoreMl {
            path: path.clone(),
            source: Box::new(CoreMlError::Failed { operation: "asking for the compute plan".to_owned(), failure }),
        })?;
        Ok(plan.share(DeviceKind::NeuralEngine))
    }
}

/// The name of the signature and its calls, if a conversation can be held with the program.
fn usable(path: &Path, model: &Program) -> Result<(&'static str, Vec<Call>)> {
    let path = path.to_owned();
    let functions = &model.program.functions;
    if functions.values().all(|f| f.states().next().is_none()) {
        return Err(Error::Stateless { path });
    }
    let (signature, calls) = recognize(model).map_err(|tried| Error::Signature { path: path.clone(), tried })?;
    let unwritten =
        calls.iter().find_map(|call| unwritten_state(&functions[&call.function]).map(|state| (call, state)));
    match unwritten {
        Some((call, state)) => {
            Err(Error::StateIgnored { path, function: call.function.clone(), state: state.to_owned() })
        }
        None => Ok((signature.name, calls)),
    }
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
