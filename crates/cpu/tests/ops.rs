//! One test over the registry, by both executors: every case of every operation as a program of that operation, with its
//! operands known at run time, or all but one of them constants, or all of them.

#[path = "common/program.rs"]
mod program;

use anemone_mil::build::{Arg, FunctionBuilder};
use anemone_mil::case::{Case, CaseArg};
use anemone_mil::interpret::Tensors;
use anemone_mil::{Buffer, Const, Effect, Function, Op, Opset, Tensor, TensorType, ops};
use program::Both;
use smallvec::SmallVec;

fn constant(t: &Tensor) -> Const {
    match &t.data {
        Buffer::F32(v) => Const::floats(t.ty.dtype, &t.ty.shape, v),
        Buffer::I32(v) => Const::ints(t.ty.dtype, &t.ty.shape, &v.iter().map(|&x| i64::from(x)).collect::<Vec<_>>()),
        Buffer::Bool(v) => Const::ints(t.ty.dtype, &t.ty.shape, &v.iter().map(|&x| i64::from(x)).collect::<Vec<_>>()),
    }
}

/// A program of one operation, its inputs, and its states.
struct Single {
    f: Function,
    inputs: Tensors,
    states: Tensors,
}

/// Operands known at run time stay so if `at_run_time` says so of their number; else they become constants.
fn program_of(op: &dyn Op, case: &Case, at_run_time: impl Fn(usize) -> bool) -> Result<Single, String> {
    let mut b = FunctionBuilder::new(Opset::CoreML8);
    let (mut inputs, mut states, mut number) = (Tensors::new(), Tensors::new(), 0);
    let mut args: Vec<(&str, Arg)> = Vec::new();
    for (p, (param, list)) in case.inputs.iter().enumerate() {
        let mut ids = SmallVec::new();
        for (i, arg) in list.iter().enumerate() {
            let name = format!("{param}_{i}");
            ids.push(match arg {
                CaseArg::Const(c) => b.constant(&name, c.clone()),
                CaseArg::Tensor(t) if p == 0 && op.effect() != Effect::Pure => {
                    states.insert(name.clone(), t.clone());
                    b.state(&name, &t.ty)
                }
                CaseArg::Tensor(t) => {
                    number += 1;
                    if at_run_time(number - 1) {
                        inputs.insert(name.clone(), t.clone());
                        b.input(&name, TensorType::from(&t.ty))
                    } else {
                        b.constant(&name, constant(t))
                    }
                }
            });
        }
        args.push((param, Arg::Values(ids)));
    }
    let types: Vec<TensorType> = case.expect.iter().map(|t| TensorType::from(&t.ty)).collect();
    let outputs = b.ops_typed(op.name(), "result", &args, &types).map_err(|e| e.to_string())?;
    Ok(Single { f: b.finish(&outputs), inputs, states })
}

fn run_time_operands(op: &dyn Op, case: &Case) -> usize {
    let tensors = |list: &[CaseArg]| list.iter().filter(|a| matches!(a, CaseArg::Tensor(_))).count();
    case.inputs.iter().skip(usize::from(op.effect() != Effect::Pure)).map(|(_, list)| tensors(list)).sum()
}

fn check(single: &Single, case: &Case) -> Result<(), String> {
    let mut both = Both::new(&single.f)?;
    single.states.iter().for_each(|(n, t)| both.set_state(n, t));
    // Twice: what a run leaves behind must not matter to the next.
    for _ in 0..2 {
        let outputs = both.run(&single.inputs, case.tolerance)?.map_err(|e| format!("interpreter: {e}"))?;
        for (&id, expected) in single.f.body.outputs.iter().zip(&case.expect) {
            let name = &single.f.value(id).name;
            program::close(&format!("interpreter: {name}"), &outputs[name], expected, case.tolerance)?;
        }
    }
    Ok(())
}

#[test]
fn every_case_gives_the_same_by_interpreter_and_plan() {
    let (mut wrong, mut programs) = (Vec::new(), 0);
    for op in ops::ALL {
        for case in op.cases() {
            let n = run_time_operands(*op, &case);
            let mut go = |what: String, at_run_time: &dyn Fn(usize) -> bool| {
                programs += 1;
                let result = program_of(*op, &case, at_run_time).and_then(|single| check(&single, &case));
                wrong.extend(result.err().map(|e| format!("{}: {} ({what}): {e}", op.name(), case.name)));
            };
            go("operands at run time".to_owned(), &|_| true);
            if n > 0 {
                go("all constant".to_owned(), &|_| false);
            }
            if n > 1 {
                (0..n).for_each(|i| go(format!("only operand {i} at run time"), &|k| k == i));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {programs}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(programs > 2 * ops::ALL.len(), "only {programs} programs");
}
