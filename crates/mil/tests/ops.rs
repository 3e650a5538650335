//! One test over the registry: to register an operation is to test it.

use anemone_mil::case::{Case, CaseArg};
use anemone_mil::operands::{Bound, Operand, apply};
use anemone_mil::{Buffer, Op, Tensor, ops};

/// The operands of a case.
fn bind<'a>(op: &dyn Op, case: &'a Case) -> Bound<'a> {
    let mut bound = Bound::new(op);
    for (param, args) in &case.inputs {
        let args: Vec<_> = args
            .iter()
            .map(|arg| match arg {
                CaseArg::Const(c) => {
                    Operand::from_const(c).unwrap_or_else(|e| panic!("{}: {}: {e}", op.name(), case.name))
                }
                CaseArg::Tensor(t) => Operand::Known(t),
            })
            .collect();
        bound.bind(op, param, args).unwrap_or_else(|e| panic!("{}: {}: {e}", op.name(), case.name));
    }
    bound.check(op).unwrap_or_else(|e| panic!("{}: {}: {e}", op.name(), case.name));
    bound
}

fn close(a: &Tensor, b: &Tensor, tolerance: f32) -> bool {
    let near = |x: f32, y: f32| {
        x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= tolerance * 1f32.max(x.abs()).max(y.abs())
    };
    a.ty == b.ty
        && match (&a.data, &b.data) {
            (Buffer::F32(x), Buffer::F32(y)) => x.iter().zip(y).all(|(&x, &y)| near(x, y)),
            (x, y) => x == y,
        }
}

#[test]
fn the_list_is_in_order_of_names() {
    for pair in ops::ALL.windows(2) {
        assert!(pair[0].name() < pair[1].name(), "{} stands before {}", pair[0].name(), pair[1].name());
    }
}

#[test]
fn every_operation_gives_what_its_cases_expect() {
    let mut wrong = Vec::new();
    for op in ops::ALL {
        let cases = op.cases();
        assert!(!cases.is_empty(), "{} has no case", op.name());
        for case in &cases {
            let place = format!("{}: {}", op.name(), case.name);
            let bound = bind(*op, case);
            match apply(*op, &bound) {
                Err(e) => wrong.push(format!("{place}: {e}")),
                Ok(results) => {
                    if results.len() != case.expect.len() || op.results(&bound) != results.len() {
                        wrong.push(format!("{place}: {} results, expected {}", results.len(), case.expect.len()));
                    }
                    for (found, expected) in results.iter().zip(&case.expect) {
                        if !close(found, expected, case.tolerance) {
                            wrong.push(format!("{place}:\n  expected {expected:?}\n  found    {found:?}"));
                        }
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn inference_never_panics_on_operands_of_the_wrong_shape() {
    // Every operand of every case, one at a time, replaced by others: the operation may refuse, never panic.
    let odd = [
        Tensor::floats(anemone_mil::DType::F32, &[], &[1.0]),
        Tensor::floats(anemone_mil::DType::F32, &[0], &[]),
        Tensor::floats(anemone_mil::DType::F16, &[1, 2, 1, 1, 2], &[1.0; 4]),
        Tensor::ints(anemone_mil::DType::I32, &[3], &[-7, 0, i32::MAX]),
        Tensor::ints(anemone_mil::DType::I32, &[], &[i32::MIN]),
        Tensor::bools(&[2, 2], &[true; 4]),
    ];
    for op in ops::ALL {
        for case in op.cases() {
            for param in 0..case.inputs.len() {
                for replacement in &odd {
                    let mut case = case.clone();
                    case.inputs[param].1 = vec![CaseArg::Tensor(replacement.clone())];
                    let bound = bind(*op, &case);
                    if let Ok(types) = op.infer(&bound) {
                        // Sizes beyond a small bound are the caller's to refuse before allocating.
                        if types.iter().all(|t| {
                            t.shape.iter().try_fold(1usize, |a, &b| a.checked_mul(b)).is_some_and(|n| n < 1 << 20)
                        }) {
                            let _ = apply(*op, &bound);
                        }
                    }
                }
            }
        }
    }
}
