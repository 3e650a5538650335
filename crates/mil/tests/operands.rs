//! Operands that no honest package has: the operations may refuse them, never panic.

use std::collections::BTreeMap;

use anemone_mil::case::CaseArg;
use anemone_mil::operands::{Bound, Operand, apply};
use anemone_mil::{DType, Op, StaticType, Tensor, ops};

/// Tensors that fit hardly anywhere.
fn odd() -> Vec<Tensor> {
    let huge = usize::MAX;
    vec![
        Tensor::floats(DType::F32, &[], &[f32::NAN]),
        Tensor::floats(DType::F16, &[2], &[f32::INFINITY, -1.0]),
        Tensor::floats(DType::F32, &[0, huge, huge], &[]),
        Tensor::floats(DType::F32, &[2, 2, 2], &[1.0; 8]),
        Tensor::floats(DType::F32, &[1, 1, 1, 1, 1, 1, 1, 2], &[1.0; 2]),
        Tensor::ints(DType::I32, &[], &[i32::MAX]),
        Tensor::ints(DType::I32, &[4], &[i32::MIN, -1, 0, 1]),
        Tensor::ints(DType::I32, &[2, 0, 2], &[]),
        Tensor::ints(DType::U32, &[3], &[i32::MAX; 3]),
        Tensor::ints(DType::U1, &[2, 2], &[0, 1, 1, -1]),
        Tensor::ints(DType::U8, &[3], &[255, -7, i32::MAX]),
        Tensor::ints(DType::U4, &[0, huge, 2], &[]),
        Tensor::ints(DType::I8, &[2, 1, 2, 1], &[-128, 127, 0, 1]),
        Tensor::bools(&[], &[true]),
        Tensor::bools(&[3, 0], &[]),
    ]
}

/// Infers, and evaluates what is small enough to be allocated.
fn try_apply(op: &dyn Op, args: &[(&'static str, Vec<Operand<'_>>)], wrong: &mut BTreeMap<&str, String>) {
    let mut bound = Bound::new(op);
    for (param, args) in args {
        bound.bind(op, param, args.iter().cloned()).expect("the parameters of a case");
    }
    let small = |t: &StaticType| {
        t.shape.contains(&0) || t.shape.iter().try_fold(1usize, |a, &b| a.checked_mul(b)).is_some_and(|n| n < 1 << 16)
    };
    let attempt = std::panic::AssertUnwindSafe(|| {
        if let Ok(types) = op.infer(&bound)
            && types.iter().all(small)
        {
            let _ = apply(op, &bound);
        }
    });
    if std::panic::catch_unwind(attempt).is_err() {
        wrong.entry(op.name()).or_insert_with(|| format!("{args:?}"));
    }
}

#[test]
fn two_wrong_operands_at_once_are_refused_or_computed() {
    let odd = odd();
    let replacements: Vec<Operand<'_>> = odd
        .iter()
        .flat_map(|t| [Operand::Known(t), Operand::Typed(t.ty.clone())])
        .chain([Operand::Text("EXACT"), Operand::Text("")])
        .collect();
    let mut wrong = BTreeMap::new();
    for op in ops::ALL {
        for case in op.cases() {
            let honest: Vec<(&'static str, Vec<Operand<'_>>)> = case
                .inputs
                .iter()
                .map(|(param, args)| {
                    let args = args.iter().map(|arg| match arg {
                        CaseArg::Const(c) => Operand::from_const(c).expect("a constant of a case"),
                        CaseArg::Tensor(t) => Operand::Known(t),
                    });
                    (*param, args.collect())
                })
                .collect();
            for first in 0..honest.len() {
                for (i, a) in replacements.iter().enumerate() {
                    let mut args = honest.clone();
                    args[first].1 = vec![a.clone()];
                    try_apply(*op, &args, &mut wrong);
                    for second in first + 1..honest.len() {
                        for (j, b) in replacements.iter().enumerate() {
                            // A third of the pairs, another third for each parameter.
                            if (i + j + second) % 3 == 0 {
                                args[second].1 = vec![b.clone()];
                                try_apply(*op, &args, &mut wrong);
                            }
                        }
                        args[second] = honest[second].clone();
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
