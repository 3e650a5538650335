//! The two executors.

use std::sync::Arc;

use anemone_cpu::{Instance, Plan, PlanOptions, Pool, State};
use anemone_mil::interpret::{Interpreter, Tensors};
use anemone_mil::lower::PackCache;
use anemone_mil::{Buffer, Data, DataMut, Function, Tensor};
use anyhow::{Context, Result, bail};
use half::f16;

use crate::terminal;

/// Runs the function operation by operation.
pub(super) fn by_interpreter(
    function: &Function,
    inputs: &Tensors,
    states: &mut Tensors,
    strict: bool,
) -> Result<Tensors> {
    let interpreter = Interpreter::new(function);
    let interpreter = if strict { interpreter.strict() } else { interpreter };
    let outputs = interpreter.run(inputs, states)?;
    tell(interpreter.overflows());
    Ok(outputs)
}

/// Says which operations overflowed in half floats.
fn tell<T: std::fmt::Display>(overflows: Vec<T>) {
    for overflow in overflows {
        terminal::note(&terminal::printable(&format!("in half floats: {overflow}")));
    }
}

/// Plans the function for these inputs, and runs the plan.
pub(super) fn by_plan(
    function: &Function,
    inputs: &Tensors,
    states: &mut Tensors,
    threads: usize,
    strict: bool,
) -> Result<Tensors> {
    let shapes = inputs.iter().map(|(name, t)| (name.clone(), t.ty.shape.to_vec())).collect();
    let options = PlanOptions { shapes, strict, ..PlanOptions::default() };
    let plan = Arc::new(Plan::new(function, &options, &PackCache::default())?);
    for note in plan.notes() {
        tracing::info!("{note:?}");
    }
    let mut instance = Instance::new(Arc::clone(&plan), Pool::new(threads));
    for (name, tensor) in inputs {
        let index = instance.input_index(name).with_context(|| format!("the plan has no input `{name}`"))?;
        match (instance.input_mut(index), &tensor.data) {
            (DataMut::F32(to), Buffer::F32(from)) if to.len() == from.len() => to.copy_from_slice(from),
            (DataMut::I32(to), Buffer::I32(from)) if to.len() == from.len() => to.copy_from_slice(from),
            (DataMut::Bool(to), Buffer::Bool(from)) if to.len() == from.len() => to.copy_from_slice(from),
            _ => bail!("the plan does not take `{name}` as {}", tensor.ty),
        }
    }
    let mut state = State::new(Arc::clone(plan.states()));
    for (name, tensor) in states.iter() {
        if let (Some(to), Some(from)) = (state.get_mut(name), tensor.as_f32()) {
            to.iter_mut().zip(from).for_each(|(to, &from)| *to = f16::from_f32(from));
        }
    }
    instance.run(&mut state)?;
    tell(instance.take_overflows());
    for (name, tensor) in states.iter_mut() {
        if let (Some(from), Buffer::F32(to)) = (state.get(name), &mut tensor.data) {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = from.to_f32());
        }
    }
    let outputs = plan.outputs().iter().enumerate().map(|(i, port)| {
        let shape = instance.output_shape(i);
        let tensor = match instance.output(i) {
            Data::F32(v) => Tensor::floats(port.dtype, shape, v),
            Data::I32(v) => Tensor::ints(port.dtype, shape, v),
            Data::Bool(v) => Tensor::bools(shape, v),
        };
        (port.name.clone(), tensor)
    });
    Ok(outputs.collect())
}
