//! From planned calls to a runner.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use anemone_cpu::StateLayout;
use anemone_kernels::buffer::Arena;
use anemone_package::Package;

use super::PackageRunner;
use super::call::PlannedCall;
use super::info::{self, CallInfo, RunnerInfo, notes};
use super::open::{name_in_parts, program};
use super::options::ModelOptions;
use super::plans_file::{KeptCall, Outline, PlansFile};
use super::settling::Settling;
use crate::location::Location;
use crate::step::{ReadyCall, ReadyStep};
use crate::{Backend, CacheLayout, CacheTensor, Error, Result};

/// The calls of a model, planned.
pub(super) struct Calls {
    /// The interface that was recognized.
    pub(super) signature: &'static str,
    /// By width and part.
    pub(super) steps: Vec<Vec<PlannedCall>>,
    /// The call that checks guesses.
    pub(super) checking: Option<PlannedCall>,
}

/// A runner of calls that go together.
///
/// # Errors
/// [`Error::Interface`] where a part gives what the next does not take, or functions declare different states.
pub(super) fn assemble(
    location: &Location,
    packages: &Arc<Vec<Package>>,
    arenas: Vec<Arc<Arena>>,
    planned: Calls,
    owner: [u8; 32],
    options: &ModelOptions,
) -> Result<PackageRunner> {
    let last = location.parts.len() - 1;
    let Calls { signature, steps: planned, checking } = planned;
    let mut layouts: Vec<Arc<StateLayout>> = Vec::new();
    let mut steps: Vec<ReadyStep<PlannedCall>> = Vec::new();
    for step in planned {
        let mut calls: Vec<PlannedCall> = Vec::new();
        for (part, planned) in step.into_iter().enumerate() {
            let (path, function) = (&location.parts[part], planned.function().to_owned());
            let strange = |problem| Error::Interface { path: path.clone(), function: function.clone(), problem };
            match (calls.last().and_then(|before| before.hidden().1), planned.hidden().0) {
                (Some(given), Some(taken)) if given != taken => {
                    let problem = format!("it takes {taken} numbers, and the part before gives {given}");
                    return Err(strange(problem));
                }
                _ => {}
            }
            let layout = planned.plan().states();
            match layouts.get(part) {
                None => layouts.push(Arc::clone(layout)),
                Some(first) if first.states != layout.states => {
                    return Err(strange("it declares other states than the package's other functions".to_owned()));
                }
                Some(_) => {}
            }
            calls.push(planned.of_part(location.part_name(part)));
        }
        steps.push(ReadyStep { logits: calls.len() > last, calls });
    }
    let first = steps.first().and_then(|step| step.calls.last()).expect("a signature has a call of one token");
    let (context, vocabulary) = (first.context(), first.vocabulary());
    let mut weight_bytes = 0;
    for (path, package) in location.parts.iter().zip(packages.iter()) {
        weight_bytes += package.weight_bytes().map_err(|e| program(path, e))?;
    }
    let (mut states, mut tensors, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for (part, layout) in layouts.iter().enumerate() {
        for mut state in info::states(layout) {
            places.push((part, state.name.clone()));
            state.name = name_in_parts(location.parts.len(), part, &state.name);
            // A mask may leave less of the states than there is.
            let length = state.shape.iter().rev().nth(1).copied().unwrap_or(context);
            let tensor = CacheTensor::of_halves(&state.name, &state.shape, length);
            tensors.push(tensor.expect("a signature asks for states of (…, context, head dim)"));
            states.push(state);
        }
    }
    let cache = CacheLayout { package: owner, context, tensors };
    let info = RunnerInfo {
        name: location.name(),
        backend: Backend::Cpu.to_string(),
        units: None,
        signature,
        parts: location.parts.len(),
        context,
        vocabulary,
        calls: steps.iter().map(CallInfo::of).collect(),
        state_bytes: states.iter().map(|s| s.bytes).sum(),
        states,
        weight_bytes,
        threads: options.thread_count(),
        notes: notes(&steps),
    };
    info.notes.iter().for_each(|note| tracing::info!("{note}"));
    Ok(PackageRunner {
        steps,
        checking,
        speculation: options.speculation,
        layouts,
        cache,
        places,
        context,
        vocabulary,
        packages: Arc::clone(packages),
        rows_read: AtomicUsize::new(0),
        holding: AtomicBool::new(false),
        settling: Settling::of(arenas),
        info,
    })
}

impl PackageRunner {
    /// Keeps the plans for the next start, if all of them can be written.
    pub(super) fn keep_plans(&self, file: &PlansFile) {
        let mut plans = Vec::new();
        let mut kept = |call: &PlannedCall| {
            let bytes = call.plan().take_kept()?;
            plans.push(bytes);
            Some(KeptCall { call: call.call().clone(), fewest: call.fewest(), bytes: plans.last().map_or(0, Vec::len) })
        };
        let steps = self.steps.iter().map(|step| step.calls.iter().map(&mut kept).collect()).collect::<Option<_>>();
        let checking = self.checking.as_ref().map(|call| kept(call).ok_or(())).transpose();
        let (Some(steps), Ok(checking)) = (steps, checking) else {
            tracing::debug!("there are plans that cannot be written, so none are kept");
            return;
        };
        let names = |package: &Package| package.weight_file_names().into_iter().map(str::to_owned).collect();
        let weight_files = self.packages.iter().map(names).collect();
        let outline = Outline { signature: self.info.signature.to_owned(), weight_files, steps, checking };
        file.write(&outline, &plans);
    }
}
