//! A Core ML for tests: it runs packages on this machine's processor, and has the habits of the real one that code must
//! not trip over. Rows are padded, states are born full of rubbish, arrays move, and it fails when it is told to.

mod array;
mod run;

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use anemone_mil::model::Model;
use anemone_package::Package;

use crate::failure::COREML_DOMAIN;
use crate::{
    ComputePlan, Conditions, Configuration, CoreMlError, Device, DeviceKind, Failure, Framework, PlannedFunction,
    PlannedOperation, Port, Ports, Result, View, ViewMut,
};
use array::Array;
pub use run::{FakeCall, FakeModel, FakeState};

/// A Core ML without Apple.
#[derive(Debug)]
pub struct Fake {
    script: Mutex<Script>,
    compiles: AtomicUsize,
    loads: AtomicUsize,
    predictions: AtomicUsize,
    arrays: AtomicUsize,
}

#[derive(Debug)]
struct Script {
    conditions: Conditions,
    build: String,
    devices: Vec<DeviceKind>,
    failures: VecDeque<(Step, Failure)>,
    supported: bool,
}

/// What can be told to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Compiling.
    Compile,
    /// Loading.
    Load,
    /// Making a state.
    NewState,
    /// Predicting.
    Predict,
}

/// How often something was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packages compiled.
    pub compiles: usize,
    /// Functions loaded.
    pub loads: usize,
    /// Predictions made.
    pub predictions: usize,
    /// Arrays made for inputs and outputs.
    pub arrays: usize,
}

/// Where a compiled package of the fake keeps the path of the package.
const PACKAGE: &str = "package.path";

impl Default for Fake {
    fn default() -> Self {
        Self::new()
    }
}

impl Fake {
    /// A cool machine with a processor and a Neural Engine.
    #[must_use]
    pub fn new() -> Self {
        let script = Script {
            conditions: Conditions::GOOD,
            build: "24G419".to_owned(),
            devices: vec![DeviceKind::Cpu, DeviceKind::NeuralEngine],
            failures: VecDeque::new(),
            supported: true,
        };
        let zero = || AtomicUsize::new(0);
        Self { script: Mutex::new(script), compiles: zero(), loads: zero(), predictions: zero(), arrays: zero() }
    }

    fn script(&self) -> std::sync::MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes it hot, or cool.
    pub fn set_conditions(&self, conditions: Conditions) {
        self.script().conditions = conditions;
    }

    /// Updates the system.
    pub fn set_build(&self, build: &str) {
        self.script().build = build.to_owned();
    }

    /// Changes the machine.
    pub fn set_devices(&self, devices: &[DeviceKind]) {
        self.script().devices = devices.to_vec();
    }

    /// Makes the system too old.
    pub fn set_supported(&self, supported: bool) {
        self.script().supported = supported;
    }

    /// Makes the next `step` fail.
    pub fn fail(&self, step: Step, failure: Failure) {
        self.script().failures.push_back((step, failure));
    }

    /// How often things were done so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let get = |n: &AtomicUsize| n.load(Ordering::SeqCst);
        Counts {
            compiles: get(&self.compiles),
            loads: get(&self.loads),
            predictions: get(&self.predictions),
            arrays: get(&self.arrays),
        }
    }

    fn step(&self, step: Step, counter: Option<&AtomicUsize>) -> Result<(), Failure> {
        counter.map(|counter| counter.fetch_add(1, Ordering::SeqCst));
        let mut script = self.script();
        match script.failures.front() {
            Some((next, _)) if *next == step => Err(script.failures.pop_front().expect("there is one").1),
            _ => Ok(()),
        }
    }
}

fn generic(message: impl std::fmt::Display) -> Failure {
    Failure::new(COREML_DOMAIN, 0, message.to_string())
}

fn open(compiled: &Path) -> Result<Model, Failure> {
    let package = fs::read_to_string(compiled.join(PACKAGE)).map_err(generic)?;
    let package = Package::open(Path::new(&package)).map_err(generic)?;
    anemone_mil::load_package(&package).map_err(generic)
}

impl Framework for Fake {
    type Model = FakeModel;
    type Call = FakeCall;
    type State = FakeState;

    fn check(&self) -> Result<()> {
        if self.script().supported {
            return Ok(());
        }
        let (feature, expected) = ("state", "macOS 15, iOS 18");
        Err(CoreMlError::System { feature, expected, found: "macOS 14.5".to_owned() })
    }

    fn os_build(&self) -> String {
        self.script().build.clone()
    }

    fn devices(&self) -> Vec<Device> {
        self.script().devices.iter().map(|&kind| Device { kind, cores: None }).collect()
    }

    fn conditions(&self) -> Conditions {
        self.script().conditions
    }

    fn compile(&self, package: &Path) -> Result<PathBuf, Failure> {
        self.step(Step::Compile, Some(&self.compiles))?;
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("anemone-fake-{}-{}.mlmodelc", std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst));
        let folder = std::env::temp_dir().join(name);
        let package = fs::canonicalize(package).map_err(generic)?;
        fs::create_dir(&folder).map_err(generic)?;
        fs::write(folder.join(PACKAGE), package.to_string_lossy().as_bytes()).map_err(generic)?;
        Ok(folder)
    }

    fn load(&self, compiled: &Path, configuration: &Configuration) -> Result<FakeModel, Failure> {
        self.step(Step::Load, Some(&self.loads))?;
        let model = open(compiled)?;
        let several = model.default_function.is_some();
        if configuration.function.is_some() && !several {
            return Err(generic(
                "MLModelConfiguration's .functionName property must be nil unless the model type is ML Program.",
            ));
        }
        let name = configuration.function.clone().unwrap_or_else(|| model.default_name().to_owned());
        let function = model.function(Some(&name)).cloned();
        FakeModel::new(function.ok_or_else(|| generic(format!("no function {name}")))?)
    }

    fn ports(&self, model: &FakeModel) -> Ports {
        model.ports()
    }

    fn new_state(&self, model: &FakeModel) -> Result<FakeState, Failure> {
        self.step(Step::NewState, None)?;
        Ok(FakeState::rubbish(&model.ports().states))
    }

    fn read_state(&self, state: &FakeState, name: &str, visit: &mut dyn FnMut(View<'_>) -> Result<()>) -> Result<()> {
        visit(state.array(name).view()?)
    }

    fn write_state(
        &self,
        state: &mut FakeState,
        name: &str,
        visit: &mut dyn FnMut(ViewMut<'_>) -> Result<()>,
    ) -> Result<()> {
        visit(state.moved(name).view_mut()?)
    }

    fn prepare(&self, _: &FakeModel, inputs: &[Port], outputs: &[Port]) -> Result<FakeCall, Failure> {
        self.arrays.fetch_add(inputs.len() + outputs.len(), Ordering::SeqCst);
        Ok(FakeCall::new(inputs))
    }

    fn write_input(
        &self,
        call: &mut FakeCall,
        index: usize,
        visit: &mut dyn FnMut(ViewMut<'_>) -> Result<()>,
    ) -> Result<()> {
        visit(call.inputs[index].view_mut()?)
    }

    fn predict(
        &self,
        model: &mut FakeModel,
        call: &mut FakeCall,
        state: Option<&mut FakeState>,
    ) -> Result<(), Failure> {
        self.step(Step::Predict, Some(&self.predictions))?;
        call.run(model, state)
    }

    fn read_output(&self, call: &FakeCall, name: &str, visit: &mut dyn FnMut(View<'_>) -> Result<()>) -> Result<()> {
        match call.outputs.iter().find(|output| output.port.name == name) {
            Some(output) => visit(output.view()?),
            None => Err(CoreMlError::Port {
                function: "fake".to_owned(),
                what: "output",
                port: name.to_owned(),
                expected: "an output of the function".to_owned(),
                found: "none of that name".to_owned(),
            }),
        }
    }

    fn plan(&self, compiled: &Path, configuration: &Configuration) -> Result<ComputePlan, Failure> {
        let model = open(compiled)?;
        let (all, engine) = (self.devices(), configuration.units.allows_neural_engine());
        let supported: Vec<DeviceKind> =
            all.iter().map(|d| d.kind).filter(|&kind| kind != DeviceKind::NeuralEngine || engine).collect();
        let functions = model.program.functions.iter().map(|(name, function)| {
            let operations = function.body.ops.iter().map(|op| PlannedOperation {
                kind: op.name_of_kind.clone(),
                outputs: op.outputs.iter().map(|&id| function.value(id).name.clone()).collect(),
                preferred: (op.name_of_kind != "const").then(|| *supported.last().unwrap_or(&DeviceKind::Cpu)),
                supported: supported.clone(),
                cost: None,
            });
            PlannedFunction { name: name.clone(), operations: operations.collect() }
        });
        Ok(ComputePlan { functions: functions.collect() })
    }
}
