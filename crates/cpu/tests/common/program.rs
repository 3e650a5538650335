//! Programs made by hand, run by the interpreter and by plans of one and of two threads, which must agree.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::sync::{Arc, OnceLock};

use anemone_cpu::{Instance, Plan, PlanOptions, Pool, State};
use anemone_mil::build::{Arg, FunctionBuilder};
use anemone_mil::interpret::{Interpreter, Tensors};
use anemone_mil::lower::PackCache;
use anemone_mil::{Buffer, DType, Data, DataMut, Function, Opset, StaticType, Tensor, TensorType, ValueId};
use half::f16;

/// A pool of so many threads, shared by all tests of a binary.
pub(crate) fn pool(threads: usize) -> Pool {
    static POOLS: [OnceLock<Pool>; 3] = [const { OnceLock::new() }; 3];
    POOLS[threads - 1].get_or_init(|| Pool::new(threads)).clone()
}

/// One function with its states, by every executor.
pub(crate) struct Both<'f> {
    interpreter: Interpreter<'f>,
    states: Tensors,
    planned: Vec<(usize, Instance, State)>,
}

impl<'f> Both<'f> {
    pub(crate) fn new(f: &'f Function) -> Result<Self, String> {
        Self::with(f, true)
    }

    /// With plans that are exact or not.
    pub(crate) fn with(f: &'f Function, exact: bool) -> Result<Self, String> {
        let interpreter = Interpreter::new(f);
        let states = interpreter.fresh_states();
        let options = PlanOptions { exact, ..PlanOptions::default() };
        let plan = Plan::new(f, &options, &PackCache::default()).map_err(|e| format!("plan: {e}"))?;
        let plan = Arc::new(plan);
        let planned = [1, 2]
            .map(|n| (n, Instance::new(Arc::clone(&plan), pool(n)), State::new(Arc::clone(plan.states()))))
            .into();
        Ok(Self { interpreter, states, planned })
    }

    pub(crate) fn plan(&self) -> &Arc<Plan> {
        self.planned[0].1.plan()
    }

    /// What a state holds before the next run.
    pub(crate) fn set_state(&mut self, name: &str, content: &Tensor) {
        self.states.insert(name.to_owned(), content.clone());
        for (_, _, state) in &mut self.planned {
            let halves = state.get_mut(name).expect("a declared state");
            halves.iter_mut().zip(content.as_f32().unwrap()).for_each(|(h, &v)| *h = f16::from_f32(v));
        }
    }

    /// The error that a plan gives.
    pub(crate) fn failure(&mut self, inputs: &Tensors) -> String {
        let (_, instance, state) = &mut self.planned[0];
        run(instance, state, inputs).expect_err("inputs that are refused")
    }

    /// Runs all executors once: outputs and states must agree within `tolerance`, or all must fail. The interpreter's
    /// outputs, or its error.
    pub(crate) fn run(&mut self, inputs: &Tensors, tolerance: f32) -> Result<Result<Tensors, String>, String> {
        let expected = self.interpreter.run(inputs, &mut self.states).map_err(|e| e.to_string());
        for (threads, instance, state) in &mut self.planned {
            let found = run(instance, state, inputs);
            let expected = match (&expected, &found) {
                (Ok(expected), Ok(_)) => expected,
                (Err(_), Err(_)) => continue,
                (Ok(_), Err(e)) => return Err(format!("{threads} threads: {e}")),
                (Err(e), Ok(_)) => return Err(format!("{threads} threads ran, the interpreter did not: {e}")),
            };
            for (name, found) in found.as_ref().unwrap() {
                close(&format!("{threads} threads: output {name}"), found, &expected[name], tolerance)?;
            }
            for (name, expected) in &self.states {
                let halves: Vec<f32> = state.get(name).unwrap().iter().map(|h| h.to_f32()).collect();
                let found = Tensor::floats(DType::F16, &expected.ty.shape, &halves);
                close(&format!("{threads} threads: state {name}"), &found, expected, tolerance)?;
            }
        }
        Ok(expected)
    }
}

/// Runs an instance with inputs by name.
pub(crate) fn run(instance: &mut Instance, state: &mut State, inputs: &Tensors) -> Result<Tensors, String> {
    for (name, tensor) in inputs {
        fill(instance, name, tensor);
    }
    instance.run(state).map_err(|e| e.to_string())?;
    let ports = instance.plan().outputs().to_vec();
    let outputs = ports.iter().enumerate().map(|(i, port)| {
        let ty = StaticType::new(port.dtype, instance.output_shape(i));
        let data = match instance.output(i) {
            Data::F32(v) => Buffer::F32(v.to_vec()),
            Data::I32(v) => Buffer::I32(v.to_vec()),
            Data::Bool(v) => Buffer::Bool(v.to_vec()),
        };
        (port.name.clone(), Tensor { ty, data })
    });
    Ok(outputs.collect())
}

/// Fills one input.
pub(crate) fn fill(instance: &mut Instance, name: &str, tensor: &Tensor) {
    let index = instance.input_index(name).unwrap_or_else(|| panic!("no input {name}"));
    assert_eq!(instance.input_shape(index), tensor.ty.shape.as_slice(), "{name}");
    match instance.input_mut(index) {
        DataMut::F32(v) => v.copy_from_slice(tensor.as_f32().unwrap()),
        DataMut::I32(v) => v.copy_from_slice(tensor.as_i32().unwrap()),
        DataMut::Bool(v) => v.copy_from_slice(tensor.as_bool().unwrap()),
    }
}

/// Whether two tensors are equal up to a tolerance, relative for numbers beyond 1. Half floats may differ by a rounding.
pub(crate) fn close(what: &str, found: &Tensor, expected: &Tensor, tolerance: f32) -> Result<(), String> {
    if found.ty != expected.ty {
        return Err(format!("{what} is {}, expected {}", found.ty, expected.ty));
    }
    let tolerance = if found.ty.dtype == DType::F16 { tolerance + 1e-3 } else { tolerance };
    let near = |x: f32, y: f32| {
        x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= tolerance * 1f32.max(x.abs()).max(y.abs())
    };
    let same = match (&found.data, &expected.data) {
        (Buffer::F32(x), Buffer::F32(y)) => x.iter().zip(y).all(|(&x, &y)| near(x, y)),
        (x, y) => x == y,
    };
    if same { Ok(()) } else { Err(format!("{what}:\n  expected {:?}\n  found    {:?}", expected.data, found.data)) }
}

/// A builder with short words for what the tests need.
pub(crate) struct Build(pub(crate) FunctionBuilder);

impl Build {
    pub(crate) fn new() -> Self {
        Self(FunctionBuilder::new(Opset::CoreML8))
    }

    /// An input of half floats.
    pub(crate) fn input(&mut self, name: &str, shape: &[usize]) -> ValueId {
        self.0.input(name, TensorType::fixed(DType::F16, shape))
    }

    /// An input of integers.
    pub(crate) fn ints(&mut self, name: &str, shape: &[usize]) -> ValueId {
        self.0.input(name, TensorType::fixed(DType::I32, shape))
    }

    pub(crate) fn state(&mut self, name: &str, shape: &[usize]) -> ValueId {
        self.0.state(name, &StaticType::new(DType::F16, shape))
    }

    pub(crate) fn op(&mut self, kind: &str, name: &str, args: &[(&str, Arg)]) -> ValueId {
        self.0.op(kind, name, args).unwrap_or_else(|e| panic!("{e}"))
    }

    pub(crate) fn read(&mut self, name: &str, state: ValueId) -> ValueId {
        self.op("read_state", name, &[("input", state.into())])
    }

    pub(crate) fn write(&mut self, state: ValueId, data: ValueId) {
        self.0.ops("write_state", "write", &[("input", state.into()), ("data", data.into())]).unwrap();
    }

    pub(crate) fn add(&mut self, name: &str, x: ValueId, y: ValueId) -> ValueId {
        self.op("add", name, &[("x", x.into()), ("y", y.into())])
    }

    pub(crate) fn reshape(&mut self, name: &str, x: ValueId, shape: &[i32]) -> ValueId {
        self.op("reshape", name, &[("x", x.into()), ("shape", shape.into())])
    }

    pub(crate) fn transpose(&mut self, name: &str, x: ValueId, perm: &[i32]) -> ValueId {
        self.op("transpose", name, &[("x", x.into()), ("perm", perm.into())])
    }

    pub(crate) fn slice(&mut self, name: &str, x: ValueId, begin: &[i32], end: &[i32]) -> ValueId {
        self.op("slice_by_index", name, &[("x", x.into()), ("begin", begin.into()), ("end", end.into())])
    }

    pub(crate) fn finish(self, outputs: &[ValueId]) -> Function {
        self.0.finish(outputs)
    }
}

/// Numbers between -1 and 1 that look random, each a half float.
pub(crate) fn noise(seed: u64, n: usize) -> Vec<f32> {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        f16::from_f32((x >> 40) as f32 / (1u64 << 23) as f32 - 1.0).to_f32()
    };
    (0..n).map(|_| next()).collect()
}

/// Half floats between -1 and 1.
pub(crate) fn halves(seed: u64, shape: &[usize]) -> Tensor {
    Tensor::floats(DType::F16, shape, &noise(seed, shape.iter().product()))
}

/// Inputs by name.
pub(crate) fn named<const N: usize>(inputs: [(&str, Tensor); N]) -> Tensors {
    inputs.into_iter().map(|(n, t)| (n.to_owned(), t)).collect()
}
