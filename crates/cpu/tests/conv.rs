//! Convolutions by kernels, against the interpreter, over odd sizes.

use std::sync::Arc;

use anemone_cpu::{Instance, Plan, PlanOptions, Pool, State};
use anemone_mil::build::FunctionBuilder;
use anemone_mil::interpret::{Interpreter, Tensors};
use anemone_mil::lower::PackCache;
use anemone_mil::{Const, DType, Data, DataMut, Function, Opset, Tensor, TensorType};

fn numbers(n: usize, seed: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7919 + seed * 104_729) % 1009) as f32 / 1009.0 - 0.5).collect()
}

struct Shape {
    image: Vec<usize>,
    weight: Vec<usize>,
    strides: Vec<i32>,
    pad: Vec<i32>,
    dilations: Vec<i32>,
    groups: i32,
}

fn convolution(s: &Shape) -> Function {
    let mut f = FunctionBuilder::new(Opset::CoreML8);
    let x = f.input("x", TensorType::fixed(DType::F32, &s.image));
    let weight = f.constant("w", Const::floats(DType::F32, &s.weight, &numbers(s.weight.iter().product(), 3)));
    let bias = f.constant("b", Const::floats(DType::F32, &s.weight[..1], &numbers(s.weight[0], 5)));
    let ints = |v: &[i32]| Const::ints(DType::I32, &[v.len()], &v.iter().map(|&v| i64::from(v)).collect::<Vec<_>>());
    let [strides, pad, dilations] =
        [("s", &s.strides), ("p", &s.pad), ("d", &s.dilations)].map(|(name, v)| f.constant(name, ints(v)));
    let groups = f.constant("g", Const::from(s.groups));
    let kind = f.constant("pt", Const::from("custom"));
    let args = [("x", x), ("weight", weight), ("bias", bias), ("strides", strides), ("pad", pad)];
    let more = [("dilations", dilations), ("groups", groups), ("pad_type", kind)];
    let args: Vec<_> = args.into_iter().chain(more).map(|(name, id)| (name, id.into())).collect();
    let y = f.op("conv", "y", &args).unwrap();
    f.finish(&[y])
}

/// What the plan gives with so many threads, and the plan as text.
fn planned(function: &Function, x: &[f32], threads: usize) -> (Vec<f32>, String) {
    let plan = Plan::new(function, &PlanOptions::default(), &PackCache::default()).unwrap();
    let text = plan.to_string();
    let mut instance = Instance::new(Arc::new(plan), Pool::new(threads));
    let DataMut::F32(to) = instance.input_mut(0) else { panic!("the input is of floats") };
    to.copy_from_slice(x);
    let mut state = State::new(instance.plan().states().clone());
    instance.run(&mut state).unwrap();
    let Data::F32(found) = instance.output(0) else { panic!("the output is of floats") };
    (found.to_vec(), text)
}

#[test]
fn kernels_give_what_the_interpreter_gives() {
    let shape = |image: &[usize], weight: &[usize], strides: &[i32], pad: &[i32], dilations: &[i32]| Shape {
        image: image.to_vec(),
        weight: weight.to_vec(),
        strides: strides.to_vec(),
        pad: pad.to_vec(),
        dilations: dilations.to_vec(),
        groups: 1,
    };
    let shapes = [
        shape(&[1, 3, 17, 13], &[7, 3, 3, 3], &[1, 1], &[1, 1, 1, 1], &[1, 1]),
        shape(&[2, 5, 9, 11], &[33, 5, 3, 2], &[2, 3], &[0, 2, 1, 0], &[1, 2]),
        shape(&[1, 64, 7, 7], &[65, 64, 3, 3], &[1, 1], &[1, 1, 1, 1], &[1, 1]),
        shape(&[1, 1, 40, 41], &[1, 1, 5, 5], &[1, 1], &[2, 2, 2, 2], &[1, 1]),
        shape(&[1, 3, 64, 64], &[16, 3, 16, 16], &[16, 16], &[0, 0, 0, 0], &[1, 1]),
        shape(&[1, 4, 31], &[6, 4, 3], &[2], &[1, 1], &[3]),
        shape(&[1, 2, 5, 6, 7], &[3, 2, 2, 3, 3], &[1, 2, 1], &[1, 0, 1, 1, 0, 1], &[1, 1, 2]),
        // 1×1 with a step, and around an edge.
        shape(&[1, 6, 9, 9], &[5, 6, 1, 1], &[2, 2], &[0, 0, 0, 0], &[1, 1]),
        shape(&[1, 6, 9, 9], &[5, 6, 1, 1], &[1, 1], &[1, 0, 0, 1], &[1, 1]),
        shape(&[2, 40, 6, 5], &[70, 40, 1, 1], &[1, 1], &[0, 0, 0, 0], &[1, 1]),
        // More windows than a piece of work has, more channels than one too.
        shape(&[1, 3, 70, 33], &[150, 3, 3, 3], &[1, 1], &[1, 1, 1, 1], &[1, 1]),
        Shape { groups: 2, ..shape(&[1, 6, 9, 9], &[4, 3, 3, 3], &[1, 1], &[1, 1, 1, 1], &[1, 1]) },
        Shape { groups: 3, ..shape(&[2, 6, 9, 11], &[33, 2, 3, 2], &[2, 2], &[1, 0, 2, 1], &[1, 3]) },
        // A channel each, and two results of each.
        Shape { groups: 5, ..shape(&[2, 5, 19, 35], &[5, 1, 3, 3], &[1, 1], &[1, 1, 1, 1], &[1, 1]) },
        Shape { groups: 5, ..shape(&[1, 5, 16, 17], &[10, 1, 5, 3], &[2, 3], &[2, 1, 0, 4], &[1, 2]) },
        Shape { groups: 4, ..shape(&[1, 4, 33], &[4, 1, 3], &[1], &[4, 0], &[2]) },
    ];
    for s in shapes {
        let function = convolution(&s);
        let x = numbers(s.image.iter().product(), 11);
        let inputs = Tensors::from([("x".to_owned(), Tensor::floats(DType::F32, &s.image, &x))]);
        let expected = Interpreter::new(&function).run(&inputs, &mut Tensors::new()).unwrap();
        let expected = expected["y"].as_f32().unwrap();
        let ((one, plan), (two, _)) = (planned(&function, &x, 1), planned(&function, &x, 2));
        let what = format!("{:?} with {:?}", s.image, s.weight);
        assert_eq!(
            plan.contains("Patches"),
            s.weight[2..].iter().product::<usize>() > 64 || s.image.len() == 5,
            "{what}: {plan}"
        );
        assert!(plan.contains("Patches") || plan.contains("Planes"), "{what}: {plan}");
        assert!(one.iter().zip(&two).all(|(a, b)| a.to_bits() == b.to_bits()), "{what}: other bits with two threads");
        let off = one.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(one.len() == expected.len() && off < 1e-4, "{what}: off by {off}");
    }
}
