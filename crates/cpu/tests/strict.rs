//! Strict plans round as the strict interpreter does, and name what overflows.

#[path = "common/program.rs"]
mod program;

use std::sync::Arc;

use anemone_cpu::{Instance, Plan, PlanOptions, Pool, State};
use anemone_mil::build::FunctionBuilder;
use anemone_mil::interpret::{Interpreter, Tensors};
use anemone_mil::lower::PackCache;
use anemone_mil::{Const, DType, Function, Opset, Tensor, TensorType};

use program::run;

/// The norm that a plain conversion to half floats writes: it squares what it is given.
fn norm() -> Function {
    let mut b = FunctionBuilder::new(Opset::CoreML8);
    let x = b.input("x", TensorType::fixed(DType::F16, &[1, 64]));
    let square = b.op("mul", "square", &[("x", x.into()), ("y", x.into())]).unwrap();
    let axes = Const::ints(DType::I32, &[1], &[-1]);
    let keep = Const::ints(DType::Bool, &[], &[1]);
    let mean = b
        .op("reduce_mean", "mean", &[("x", square.into()), ("axes", axes.into()), ("keep_dims", keep.into())])
        .unwrap();
    let root = b
        .op("rsqrt", "root", &[("x", mean.into()), ("epsilon", Const::floats(DType::F16, &[], &[1e-5]).into())])
        .unwrap();
    let y = b.op("mul", "y", &[("x", x.into()), ("y", root.into())]).unwrap();
    b.finish(&[y])
}

fn strict(f: &Function) -> (Instance, State) {
    let options = PlanOptions { strict: true, ..PlanOptions::default() };
    let plan = Arc::new(Plan::new(f, &options, &PackCache::default()).unwrap());
    let state = State::new(Arc::clone(plan.states()));
    (Instance::new(plan, Pool::new(1)), state)
}

fn given(largest: f32) -> Tensors {
    let values: Vec<f32> = (0..64).map(|i| largest * ((i * 37 % 64) as f32 / 64.0 - 0.3)).collect();
    let halves: Vec<f32> = values.iter().map(|v| half::f16::from_f32(*v).to_f32()).collect();
    Tensors::from([("x".to_owned(), Tensor::floats(DType::F16, &[1, 64], &halves))])
}

#[test]
fn the_same_as_the_strict_interpreter() {
    let f = norm();
    let (mut instance, mut state) = strict(&f);
    for largest in [0.01, 3.0, 300.0] {
        let inputs = given(largest);
        let interpreter = Interpreter::new(&f).strict();
        let expected = interpreter.run(&inputs, &mut Tensors::new()).unwrap();
        let found = run(&mut instance, &mut state, &inputs).unwrap();
        let (found, expected) = (found["y"].as_f32().unwrap(), expected["y"].as_f32().unwrap());
        // Sums within an operation stay in single floats, in whatever order.
        let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 2e-3 * b.abs().max(1e-2);
        assert!(found.iter().zip(expected).all(near), "{largest}: {found:?} {expected:?}");
        assert!(instance.take_overflows().is_empty() && interpreter.overflows().is_empty());
    }
}

#[test]
fn the_operation_that_overflows_is_named_and_those_after_it_are_not() {
    let f = norm();
    let (mut instance, mut state) = strict(&f);
    for _ in 0..2 {
        let found = run(&mut instance, &mut state, &given(24_926.0)).unwrap();
        assert!(found["y"].as_f32().unwrap().iter().all(|v| *v == 0.0), "as hardware answers: garbage");
    }
    let overflows = instance.take_overflows();
    assert_eq!((overflows.len(), overflows[0].runs), (1, 2), "{overflows:?}");
    assert!(
        overflows[0].to_string().contains("square") && overflows[0].to_string().contains("2 runs"),
        "{overflows:?}"
    );
    assert!(instance.take_overflows().is_empty());
    // Without it the same program gives what its maker meant.
    let plan = Arc::new(Plan::new(&f, &PlanOptions::default(), &PackCache::default()).unwrap());
    let mut plain = Instance::new(Arc::clone(&plan), Pool::new(1));
    let found = run(&mut plain, &mut State::new(Arc::clone(plan.states())), &given(24_926.0)).unwrap();
    assert!(found["y"].as_f32().unwrap().iter().any(|v| v.abs() > 0.5));
}
