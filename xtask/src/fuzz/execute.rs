//! Runs a program that the verifier accepts, by both executors, on inputs that depend on nothing but their shapes.

use std::sync::Arc;

use anemone_cpu::{Instance, Plan, PlanOptions, Pool, State};
use anemone_mil::interpret::{Interpreter, Tensors};
use anemone_mil::lower::PackCache;
use anemone_mil::{Buffer, Class, DType, Data, DataMut, Function, StaticType, Tensor, Type};

/// A program whose values have more elements together is not run: it would only take long.
const MAX_ELEMENTS: usize = 1 << 18;

/// Runs the function if it is small and its shapes are known. Either executor may refuse; where both give results, these
/// agree. Whether they did.
pub(super) fn function(function: &Function) -> bool {
    let types: Option<Vec<StaticType>> = function
        .values
        .iter()
        .filter_map(|value| match &value.ty {
            Type::Tensor(ty) | Type::State(ty) => Some(ty.to_static()),
            _ => None,
        })
        .collect();
    let Some(types) = types else { return false };
    let elements = types.iter().try_fold(0usize, |sum, ty| sum.checked_add(ty.elements()));
    if elements.is_none_or(|elements| elements > MAX_ELEMENTS) {
        return false;
    }
    let mut inputs = Tensors::new();
    for id in &function.inputs {
        let value = function.value(*id);
        if let Some(ty) = value.ty.tensor().and_then(|ty| ty.to_static()) {
            let Some(tensor) = fill(ty) else { return false };
            inputs.insert(value.name.clone(), tensor);
        }
    }
    let interpreter = Interpreter::new(function);
    let mut states = interpreter.fresh_states();
    let plain = interpreter.run(&inputs, &mut states);
    let planned = planned(function, &inputs);
    let (Ok(mut plain), Some(planned)) = (plain, planned) else { return false };
    plain.extend(states.into_iter().map(|(name, state)| (format!("state {name}"), state)));
    for (name, found) in &planned {
        let expected = &plain[name];
        assert!(close(found, expected), "{name}: the plan gives {found:?}, the interpreter {expected:?}");
    }
    true
}

fn planned(function: &Function, inputs: &Tensors) -> Option<Tensors> {
    let plan = Arc::new(Plan::new(function, &PlanOptions::default(), &PackCache::default()).ok()?);
    let mut instance = Instance::new(Arc::clone(&plan), Pool::new(1));
    for (name, tensor) in inputs {
        let index = instance.input_index(name)?;
        match (instance.input_mut(index), &tensor.data) {
            (DataMut::F32(to), Buffer::F32(from)) => to.copy_from_slice(from),
            (DataMut::I32(to), Buffer::I32(from)) => to.copy_from_slice(from),
            (DataMut::Bool(to), Buffer::Bool(from)) => to.copy_from_slice(from),
            _ => panic!("the plan takes {name} as another class than its type says"),
        }
    }
    let mut state = State::new(Arc::clone(plan.states()));
    instance.run(&mut state).ok()?;
    let outputs = plan.outputs().iter().enumerate().map(|(index, port)| {
        let shape = instance.output_shape(index);
        let tensor = match instance.output(index) {
            Data::F32(values) => Tensor::floats(port.dtype, shape, values),
            Data::I32(values) => Tensor::ints(port.dtype, shape, values),
            Data::Bool(values) => Tensor::bools(shape, values),
        };
        (port.name.clone(), tensor)
    });
    let states = plan.states().states.iter().map(|spec| {
        let values: Vec<f32> = state.get(&spec.name)?.iter().map(|value| value.to_f32()).collect();
        Some((format!("state {}", spec.name), Tensor::floats(DType::F16, &spec.shape, &values)))
    });
    states.chain(outputs.map(Some)).collect()
}

/// Small values, some of them negative or the same; no texts.
fn fill(ty: StaticType) -> Option<Tensor> {
    let count = ty.elements();
    Some(match ty.dtype.class() {
        Class::Float => {
            let values: Vec<f32> = (0..count).map(|i| (i * 5 % 7) as f32 * 0.5 - 1.25).collect();
            Tensor::floats(ty.dtype, &ty.shape, &values)
        }
        Class::Int => {
            let values: Vec<i32> = (0..count).map(|i| (i * 5 % 3) as i32).collect();
            Tensor::ints(ty.dtype, &ty.shape, &values)
        }
        Class::Bool => {
            let values: Vec<bool> = (0..count).map(|i| i % 3 == 0).collect();
            Tensor::bools(&ty.shape, &values)
        }
        Class::String => return None,
    })
}

/// The same but for rounding, wherever both are finite.
fn close(found: &Tensor, expected: &Tensor) -> bool {
    if found.ty.shape != expected.ty.shape {
        return false;
    }
    match (&found.data, &expected.data) {
        (Buffer::F32(found), Buffer::F32(expected)) => found.iter().zip(expected).all(|(found, expected)| {
            let scale = 1f32.max(found.abs()).max(expected.abs());
            !found.is_finite() || !expected.is_finite() || (found - expected).abs() <= 0.01 * scale
        }),
        (found, expected) => found == expected,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Shape, mutate, programs};

    #[test]
    fn most_seeds_run_and_many_random_programs_do() {
        let programs = programs::cases();
        let run = programs.iter().filter(|(_, program)| super::function(&program.functions["main"])).count();
        assert!(run * 10 > programs.len() * 8, "{run} of {} seeds", programs.len());

        let rounds = (0..100).map(|round| mutate::input("programs", Shape::Binary, &[], round));
        let made: Vec<_> = rounds.map(|recipe| programs::random(&recipe)).collect();
        let run = made.iter().filter(|function| super::function(function)).count();
        let operations: usize = made.iter().map(|function| function.body.ops.len()).sum();
        assert!(run > 50 && operations > 500, "{run} of 100 programs run, with {operations} operations");
    }
}
