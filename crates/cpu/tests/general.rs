//! Whole models that are no chats, small: the plan against the interpreter, and the same bits for any number of threads.

#[path = "../examples/profile/models.rs"]
mod models;

use std::sync::Arc;

use anemone_cpu::{Instance, Plan, PlanOptions, Pool, State};
use anemone_mil::interpret::{Interpreter, Tensors};
use anemone_mil::lower::PackCache;
use anemone_mil::{Buffer, DType, Data, DataMut, Function, Tensor};

fn floats(shape: &[usize]) -> Tensor {
    let values: Vec<f32> = (0..shape.iter().product()).map(|i: usize| (i * 7919 % 1009) as f32 / 504.5 - 1.0).collect();
    Tensor::floats(DType::F16, shape, &values)
}

fn fill(instance: &mut Instance, inputs: &Tensors) {
    for (name, tensor) in inputs {
        let index = instance.input_index(name).unwrap();
        match (instance.input_mut(index), &tensor.data) {
            (DataMut::F32(to), Buffer::F32(from)) => to.copy_from_slice(from),
            (DataMut::I32(to), Buffer::I32(from)) => to.copy_from_slice(from),
            _ => panic!("`{name}` is of another class"),
        }
    }
}

fn planned(f: &Function, inputs: &Tensors, threads: usize) -> Vec<f32> {
    let plan = Plan::new(f, &PlanOptions::default(), &PackCache::default()).unwrap();
    let mut instance = Instance::new(Arc::new(plan), Pool::new(threads));
    fill(&mut instance, inputs);
    let mut state = State::new(instance.plan().states().clone());
    // Twice: what a run leaves behind must not matter to the next.
    instance.run(&mut state).unwrap();
    instance.run(&mut state).unwrap();
    let Data::F32(found) = instance.output(0) else { panic!("the output is of floats") };
    found.to_vec()
}

fn check(f: &Function, inputs: &Tensors, what: &str) {
    let outputs = Interpreter::new(f).run(inputs, &mut Tensors::new()).unwrap();
    let expected = outputs.values().next().unwrap().as_f32().unwrap();
    let one = planned(f, inputs, 1);
    let largest = expected.iter().fold(0.0_f32, |m, v| m.max(v.abs()));
    let off = one.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(one.len() == expected.len() && largest.is_finite() && largest > 1e-4, "{what}: the largest is {largest}");
    assert!(off <= largest * 1e-3, "{what}: off by {off} of {largest}");
    for threads in [2, 3, 5] {
        let same = planned(f, inputs, threads).iter().zip(&one).all(|(a, b)| a.to_bits() == b.to_bits());
        assert!(same, "{what}: other bits with {threads} threads");
    }
}

#[test]
fn images() {
    let inputs = Tensors::from([("image".to_owned(), floats(&[1, 3, 40, 40]))]);
    check(&models::vision(40).unwrap(), &inputs, "vision");
    check(&models::residual(40).unwrap(), &inputs, "residual");
}

#[test]
fn an_instance_that_rested_gives_the_same_bits() {
    let inputs = Tensors::from([("image".to_owned(), floats(&[1, 3, 80, 80]))]);
    let plan = Plan::new(&models::vision(80).unwrap(), &PlanOptions::default(), &PackCache::default()).unwrap();
    let mut instance = Instance::new(Arc::new(plan), Pool::new(2));
    let mut state = State::new(instance.plan().states().clone());
    let mut run = |instance: &mut Instance| {
        fill(instance, &inputs);
        instance.run(&mut state).unwrap();
        let Data::F32(found) = instance.output(0) else { panic!("the output is of floats") };
        found.iter().map(|v| v.to_bits()).collect::<Vec<_>>()
    };
    let first = run(&mut instance);
    fill(&mut instance, &inputs);
    instance.rest();
    #[cfg(target_os = "linux")]
    {
        let DataMut::F32(image) = instance.input_mut(0) else { panic!("an image is of floats") };
        let within = image.len() / 4..image.len() / 2;
        assert!(image[within].iter().all(|&v| v == 0.0), "its pages were given back");
    }
    assert_eq!(run(&mut instance), first);
}

#[test]
fn texts() {
    let n = 21;
    let tokens: Vec<i64> = (0..n as i64).map(|i| i * 131 % 3000).collect();
    let mut mask = vec![0.0; n];
    mask[17..].fill(-1e4);
    let inputs = Tensors::from([
        ("tokens".to_owned(), Tensor::ints(DType::I32, &[1, n], &tokens.iter().map(|&t| t as i32).collect::<Vec<_>>())),
        ("mask".to_owned(), Tensor::floats(DType::F16, &[1, 1, 1, n], &mask)),
    ]);
    check(&models::embedding(n).unwrap(), &inputs, "embedding");
}
