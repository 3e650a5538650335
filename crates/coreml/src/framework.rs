//! What Core ML is asked to do: the seam between decisions and calls.

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use crate::{ComputePlan, Conditions, Configuration, Device, Failure, Port, Ports, Result, View, ViewMut};

/// Core ML, or something that behaves like it.
///
/// Implementations do what they are told and decide nothing. All calls block. One `Model` and one `Call` are used by one
/// thread at a time, which `&mut` says; what is written to a `State` is written by one prediction at a time.
pub trait Framework: Debug + Send + Sync + 'static {
    /// One function of a compiled package, loaded.
    type Model: Debug + Send;
    /// Arrays for the inputs and outputs of one function, made once and used for every call.
    type Call: Debug + Send;
    /// What stays between predictions.
    type State: Debug + Send;

    /// Whether this system can run packages with states at all.
    ///
    /// # Errors
    /// [`CoreMlError::System`](crate::CoreMlError::System) with what is needed.
    fn check(&self) -> Result<()>;

    /// The build of the system, such as `24G419`: what is compiled on one is not used on another.
    fn os_build(&self) -> String;

    /// The devices of this machine.
    fn devices(&self) -> Vec<Device>;

    /// Heat and power just now.
    fn conditions(&self) -> Conditions;

    /// Compiles a package, and returns a folder that Core ML may remove at any time: it is to be moved at once.
    ///
    /// # Errors
    /// What Core ML says.
    fn compile(&self, package: &Path) -> Result<PathBuf, Failure>;

    /// Loads one function of a compiled package.
    ///
    /// # Errors
    /// What Core ML says.
    fn load(&self, compiled: &Path, configuration: &Configuration) -> Result<Self::Model, Failure>;

    /// The ports of a loaded function. Those of element types that are unknown here are left out.
    fn ports(&self, model: &Self::Model) -> Ports;

    /// A state for a loaded function. Its content is whatever Core ML left there.
    ///
    /// # Errors
    /// What Core ML says.
    fn new_state(&self, model: &Self::Model) -> Result<Self::State, Failure>;

    /// Shows one array of a state.
    ///
    /// # Errors
    /// If its memory cannot be seen.
    fn read_state(&self, state: &Self::State, name: &str, visit: &mut dyn FnMut(View<'_>) -> Result<()>) -> Result<()>;

    /// Shows one array of a state, to be written.
    ///
    /// # Errors
    /// If its memory cannot be seen.
    fn write_state(
        &self,
        state: &mut Self::State,
        name: &str,
        visit: &mut dyn FnMut(ViewMut<'_>) -> Result<()>,
    ) -> Result<()>;

    /// Makes arrays for `inputs`, and rooms into which Core ML is to write `outputs` (a part of the function's outputs).
    ///
    /// # Errors
    /// What Core ML says.
    fn prepare(&self, model: &Self::Model, inputs: &[Port], outputs: &[Port]) -> Result<Self::Call, Failure>;

    /// Shows the array of the input of that index, to be written.
    ///
    /// # Errors
    /// If its memory cannot be seen.
    fn write_input(
        &self,
        call: &mut Self::Call,
        index: usize,
        visit: &mut dyn FnMut(ViewMut<'_>) -> Result<()>,
    ) -> Result<()>;

    /// Predicts once, with a state if the function has any.
    ///
    /// # Errors
    /// What Core ML says. A state may then have been written in part.
    fn predict(
        &self,
        model: &mut Self::Model,
        call: &mut Self::Call,
        state: Option<&mut Self::State>,
    ) -> Result<(), Failure>;

    /// Shows an output of the last prediction.
    ///
    /// # Errors
    /// If there is none of that name, or its memory cannot be seen.
    fn read_output(&self, call: &Self::Call, name: &str, visit: &mut dyn FnMut(View<'_>) -> Result<()>) -> Result<()>;

    /// Where Core ML means to run the operations of a compiled package.
    ///
    /// # Errors
    /// What Core ML says.
    fn plan(&self, compiled: &Path, configuration: &Configuration) -> Result<ComputePlan, Failure>;
}
