//! Running a plan.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anemone_kernels::buffer::give_back;
use anemone_mil::layout::Layout;
use anemone_mil::lower::Context;
use anemone_mil::op::{OpError, Operands, Out};
use anemone_mil::operands::infer;
use anemone_mil::types::{DType, elements};
use anemone_mil::{Buffer, Data, DataMut};
use half::f16;
use smallvec::SmallVec;

use crate::copy::{gather, gather_halves, gather_with, scatter_halves, scatter_view};
use crate::error::RunError;
use crate::plan::{Plan, Port, RunAction, RunStep, Varying};
use crate::pool::Pool;
use crate::schedule::{At, Source, Tables};
use crate::state::{Halves, State};

/// A plan with the memory to run it. Making one is the last allocation.
#[derive(Debug)]
pub struct Instance {
    plan: Arc<Plan>,
    pub(crate) tables: Tables,
    pub(crate) slots: Vec<Buffer>,
    outputs: Vec<Buffer>,
    scratch: Vec<f32>,
    pool: Pool,
    /// Of a strict plan: runs in which a step made infinities or NaN of finite operands, by its index.
    pub(crate) overflows: BTreeMap<usize, usize>,
}

impl Instance {
    /// Allocates what runs of `plan` need.
    #[must_use]
    pub fn new(plan: Arc<Plan>, pool: Pool) -> Self {
        let slots = plan.memory.slots.iter().map(|&(class, n)| Buffer::zeros(class, n)).collect();
        let outputs = plan.outputs.iter().map(|p| Buffer::zeros(p.dtype.class(), elements(&p.shape))).collect();
        let tables = plan.lines.own(&plan.tables);
        let scratch = vec![0.0; plan.scratch];
        let [inputs, pieces] = plan.room;
        pool.reserve(inputs, pieces);
        Self { tables, slots, outputs, scratch, pool, plan, overflows: BTreeMap::new() }
    }

    /// Gives the memory of what is computed back to the system until the next run, which finds it slower. What outputs and
    /// inputs hold is lost.
    pub fn rest(&mut self) {
        for buffer in self.slots.iter_mut().chain(&mut self.outputs) {
            match buffer {
                Buffer::F32(all) => give_back(all),
                Buffer::I32(all) => give_back(all),
                Buffer::Bool(_) => {}
            }
        }
        give_back(&mut self.scratch);
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Sets the varying extent of the next runs: shapes of inputs and outputs follow it.
    ///
    /// # Errors
    /// If it is outside the range that was planned, or nothing varies, or two extents do.
    pub fn set_extent(&mut self, extent: usize) -> Result<(), RunError> {
        match (&self.plan.varying, &self.plan.tokens) {
            (None, Some(_)) => self.set_extents(0, extent),
            _ => self.set_extents(extent, 0),
        }
    }

    /// As [`Instance::set_extent`], of the varying extent and the number of tokens. Either is 0 if it does not vary.
    ///
    /// # Errors
    /// As [`Instance::set_extent`].
    pub fn set_extents(&mut self, extent: usize, tokens: usize) -> Result<(), RunError> {
        let range = |varying: &Option<Varying>| varying.as_ref().map_or((0, 0), |v| (v.low, v.high));
        let (low, high) = range(&self.plan.varying);
        let low = low.max(if self.plan.varying.is_some() { tokens } else { 0 });
        let nothing = self.plan.varying.is_none() && self.plan.tokens.is_none();
        for (found, (low, high)) in [(tokens, range(&self.plan.tokens)), (extent, (low, high))] {
            if nothing && extent > 0 || !(low..=high).contains(&found) {
                return Err(RunError::Extent { found, low, high });
            }
        }
        if !self.plan.lines.is_empty() {
            self.plan.lines.move_to([extent, tokens], &mut self.tables);
        }
        Ok(())
    }

    /// The index of the input `name`.
    #[must_use]
    pub fn input_index(&self, name: &str) -> Option<usize> {
        self.plan.inputs.iter().position(|p| p.name == name)
    }

    /// The shape of an input at the extent that is set.
    #[must_use]
    pub fn input_shape(&self, index: usize) -> &[usize] {
        &self.tables.shapes[self.plan.input_shapes[index].0 as usize]
    }

    /// The elements of an input, to be filled before a run. Their content after a run is unspecified.
    #[must_use]
    pub fn input_mut(&mut self, index: usize) -> DataMut<'_> {
        let slot = self.plan.memory.slot_of[self.plan.input_buffers[index] as usize];
        let len = elements(&self.tables.shapes[self.plan.input_shapes[index].0 as usize]);
        self.slots[slot as usize].view_mut(len)
    }

    /// The index of the output `name`.
    #[must_use]
    pub fn output_index(&self, name: &str) -> Option<usize> {
        self.plan.outputs.iter().position(|p| p.name == name)
    }

    /// The shape of an output at the extent that is set.
    #[must_use]
    pub fn output_shape(&self, index: usize) -> &[usize] {
        &self.tables.shapes[self.plan.output_sources[index].shape.0 as usize]
    }

    /// The elements of an output after a run, rounded to its declared type.
    #[must_use]
    pub fn output(&self, index: usize) -> Data<'_> {
        self.outputs[index].view(elements(self.output_shape(index)))
    }

    /// Runs the plan once, reading and writing `state` in place. Allocates nothing unless it fails.
    ///
    /// # Errors
    /// If the state is another package's, or a run-time value is out of bounds; the state may then have been written in part.
    pub fn run(&mut self, state: &mut State) -> Result<(), RunError> {
        state.check(&self.plan.states)?;
        let plan = Arc::clone(&self.plan);
        for (index, step) in plan.steps.iter().enumerate() {
            self.step(&plan, step, &mut state.tensors)
                .map_err(|source| RunError::Op { place: step.place.to_string(), source })?;
            if plan.strict {
                self.round(&plan, index, step, &state.tensors);
            }
        }
        for (i, (port, source)) in plan.outputs.iter().zip(&plan.output_sources).enumerate() {
            let mut out = std::mem::replace(&mut self.outputs[i], Buffer::F32(Vec::new()));
            self.deliver(&plan, port, source, &mut out);
            self.outputs[i] = out;
        }
        Ok(())
    }

    /// As [`Instance::run`], telling for each step what ran (an operation, or `copy`, `update`, `store`) and how long it took.
    ///
    /// # Errors
    /// As [`Instance::run`].
    pub fn run_timed(&mut self, state: &mut State, tell: &mut dyn FnMut(&str, Duration)) -> Result<(), RunError> {
        state.check(&self.plan.states)?;
        let plan = Arc::clone(&self.plan);
        for step in &plan.steps {
            let start = Instant::now();
            self.step(&plan, step, &mut state.tensors)
                .map_err(|source| RunError::Op { place: step.place.to_string(), source })?;
            let kind = match step.action {
                RunAction::Copy => "copy",
                RunAction::Update { .. } => "update",
                RunAction::Store { .. } => "store",
                RunAction::Eval | RunAction::Kernel(_) => step.op.map_or("", |op| op.0.name()),
            };
            tell(kind, start.elapsed());
        }
        Ok(())
    }

    fn step(&mut self, plan: &Plan, step: &RunStep, states: &mut [Halves]) -> Result<(), OpError> {
        match &step.action {
            RunAction::Update { update, state } => {
                let op = step.op.expect("an update has its operation").0;
                let x = StepOperands { plan, step, tables: &self.tables, slots: &self.slots, states: &[] };
                let target = Layout::contiguous(x.ty_at(update.target, 0).1);
                let region = op.region(&x, &target)?;
                let Some(Data::F32(source)) = x.data_at(update.source, 0) else {
                    return Err(OpError::mismatch("floating elements for a state", "another class"));
                };
                match x.layout_at(update.source, 0) {
                    Some(layout) => scatter_view(&region, layout, source, &mut states[*state]),
                    None => scatter_halves(&region, source, &mut states[*state]),
                }
                Ok(())
            }
            RunAction::Store { state } => {
                let x = StepOperands { plan, step, tables: &self.tables, slots: &self.slots, states: &[] };
                let Some(Data::F32(source)) = x.data_at(0, 0) else {
                    return Err(OpError::mismatch("floating elements for a state", "another class"));
                };
                scatter_halves(&Layout::contiguous(x.ty_at(0, 0).1), source, &mut states[*state]);
                Ok(())
            }
            RunAction::Copy | RunAction::Eval | RunAction::Kernel(_) => {
                let mut taken: SmallVec<[Buffer; 4]> = step
                    .outs
                    .iter()
                    .map(|t| {
                        let slot = plan.memory.slot_of[t.buffer as usize] as usize;
                        std::mem::replace(&mut self.slots[slot], Buffer::F32(Vec::new()))
                    })
                    .collect();
                let result = self.compute(plan, step, &mut taken, states);
                for (t, buffer) in step.outs.iter().zip(taken) {
                    self.slots[plan.memory.slot_of[t.buffer as usize] as usize] = buffer;
                }
                result
            }
        }
    }

    fn compute(&mut self, plan: &Plan, step: &RunStep, taken: &mut [Buffer], states: &[Halves]) -> Result<(), OpError> {
        let tables = &self.tables;
        let mut outs: SmallVec<[Out<'_>; 4]> = step
            .outs
            .iter()
            .zip(taken)
            .map(|(t, buffer)| {
                let shape = &tables.shapes[t.shape.0 as usize];
                Out { dtype: t.dtype, shape, data: buffer.view_mut(elements(shape)) }
            })
            .collect();
        let x = StepOperands { plan, step, tables, slots: &self.slots, states };
        if let (true, Some(op)) = (step.declared, &step.op) {
            let found = infer(op.0, &x)?;
            if !found.iter().map(|t| t.shape.as_slice()).eq(outs.iter().map(|o| o.shape)) {
                let declared: Vec<_> = outs.iter().map(|o| o.shape).collect();
                let found: Vec<_> = found.iter().map(|t| t.shape.as_slice()).collect();
                let expected = format!("results of the declared shapes {declared:?}");
                return Err(OpError::mismatch(expected, format!("{found:?}")));
            }
        }
        match &step.action {
            RunAction::Kernel(kernel) => {
                let mut cx = Context { workers: &self.pool, scratch: &mut self.scratch[..kernel.scratch()] };
                kernel.run(&x, &mut outs, &mut cx)
            }
            RunAction::Eval => step.op.expect("a node has its operation").0.eval(&x, &mut outs),
            _ => {
                copy(&x, &mut outs[0], &self.pool);
                Ok(())
            }
        }
    }

    fn deliver(&self, plan: &Plan, port: &Port, source: &Source, out: &mut Buffer) {
        let n = elements(&self.tables.shapes[source.shape.0 as usize]);
        let data = resolve(source, plan, &self.tables, &self.slots, n);
        match (out, data) {
            (Buffer::F32(to), Some(Data::F32(from))) if port.dtype == DType::F16 => {
                to[..n].iter_mut().zip(from).for_each(|(t, &f)| *t = f16::from_f32(f).to_f32());
            }
            (Buffer::F32(to), Some(Data::F32(from))) => to[..n].copy_from_slice(from),
            (Buffer::I32(to), Some(Data::I32(from))) => to[..n].copy_from_slice(from),
            (Buffer::Bool(to), Some(Data::Bool(from))) => to[..n].copy_from_slice(from),
            (out, data) => unreachable!("an output of {} elements from {data:?}", out.len()),
        }
    }
}

fn copy(x: &StepOperands<'_>, out: &mut Out<'_>, pool: &Pool) {
    let layout = x.layout_at(0, 0).expect("a copy is of a view");
    match (x.halves_at(0, 0), x.storage(0, 0), &mut out.data) {
        (Some(halves), _, DataMut::F32(to)) => gather_halves(layout, halves, to),
        (None, Some(Data::F32(from)), DataMut::F32(to)) => gather_with(pool, layout, from, to),
        (None, Some(Data::I32(from)), DataMut::I32(to)) => gather(layout, from, to),
        (None, Some(Data::Bool(from)), DataMut::Bool(to)) => gather(layout, from, to),
        _ => unreachable!("a copy keeps the class of its elements"),
    }
}

/// The operands of one step.
pub(crate) struct StepOperands<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) step: &'a RunStep,
    pub(crate) tables: &'a Tables,
    pub(crate) slots: &'a [Buffer],
    pub(crate) states: &'a [Halves],
}

impl StepOperands<'_> {
    fn storage(&self, param: usize, index: usize) -> Option<Data<'_>> {
        let source = self.step.args[param].get(index)?;
        resolve(source, self.plan, self.tables, self.slots, elements(&self.tables.shapes[source.shape.0 as usize]))
    }
}

fn resolve<'a>(source: &Source, plan: &Plan, tables: &'a Tables, slots: &'a [Buffer], n: usize) -> Option<Data<'a>> {
    let slot = |b: u32| &slots[plan.memory.slot_of[b as usize] as usize];
    match source.at {
        At::Whole(b) => Some(slot(b).view(n)),
        At::Part(b, layout) => {
            let at = tables.layouts[layout.0 as usize].offset;
            Some(match slot(b) {
                Buffer::F32(v) => Data::F32(&v[at..at + n]),
                Buffer::I32(v) => Data::I32(&v[at..at + n]),
                Buffer::Bool(v) => Data::Bool(&v[at..at + n]),
            })
        }
        At::View(b, _) => Some(slot(b).view(slot(b).len())),
        At::Constant(c) => {
            let data = &tables.constants[c as usize].data;
            Some(data.view(data.len()))
        }
        At::State(..) | At::Text(_) | At::Held => None,
    }
}

impl Operands for StepOperands<'_> {
    fn count(&self, param: usize) -> usize {
        self.step.args[param].len()
    }

    fn ty_at(&self, param: usize, index: usize) -> (DType, &[usize]) {
        let source = &self.step.args[param][index];
        (source.dtype, &self.tables.shapes[source.shape.0 as usize])
    }

    fn data_at(&self, param: usize, index: usize) -> Option<Data<'_>> {
        self.storage(param, index)
    }

    fn text_at(&self, param: usize, index: usize) -> Option<&str> {
        match &self.step.args[param].get(index)?.at {
            At::Text(s) => Some(s),
            _ => None,
        }
    }

    fn layout_at(&self, param: usize, index: usize) -> Option<&Layout> {
        match self.step.args[param][index].at {
            At::View(_, layout) | At::State(_, layout) => Some(&self.tables.layouts[layout.0 as usize]),
            _ => None,
        }
    }

    fn halves_at(&self, param: usize, index: usize) -> Option<&[f16]> {
        match self.step.args[param][index].at {
            At::State(state, _) => self.states.get(state).map(|halves| &**halves),
            _ => None,
        }
    }

    fn name_of(&self, param: usize) -> &'static str {
        self.step.op.map_or("x", |op| op.0.params()[param].name)
    }
}
