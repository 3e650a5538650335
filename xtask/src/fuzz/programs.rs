//! Small programs: one for each case of each operation, and random ones of many operations.

use anemone_mil::build::{Arg, FunctionBuilder};
use anemone_mil::case::{Case, CaseArg};
use anemone_mil::types::TensorType;
use anemone_mil::{DType, Function, Op, Opset, Program, StaticType, ValueId, ops};

/// The cases of all operations as programs, by name. A case that makes no program of its own (its operands must be known
/// when it is built, say) is left out.
pub(super) fn cases() -> Vec<(String, Program)> {
    let mut programs = Vec::new();
    for op in ops::ALL {
        for (index, case) in op.cases().iter().enumerate() {
            if let Some(program) = program(*op, case) {
                programs.push((format!("{}-{index}", op.name()), program));
            }
        }
    }
    programs
}

fn program(op: &dyn Op, case: &Case) -> Option<Program> {
    let mut builder = FunctionBuilder::new(Opset::CoreML8);
    let mut args: Vec<(&str, Arg)> = Vec::new();
    for (param, given) in &case.inputs {
        let mut values = Vec::new();
        for (index, arg) in given.iter().enumerate() {
            let name = format!("{param}_{index}");
            values.push(match arg {
                CaseArg::Const(constant) => builder.constant(&name, constant.clone()),
                CaseArg::Tensor(tensor) => builder.input(&name, TensorType::from(&tensor.ty)),
            });
        }
        args.push((param, Arg::Values(values.into_iter().collect())));
    }
    let results = builder.ops(op.name(), "y", &args).ok()?;
    let function = builder.finish(&results);
    Some(Program { version: 1, functions: [("main".to_owned(), function)].into(), attributes: Default::default() })
}

/// A random program: the bytes decide which cases are strung together, and how. Whatever they are, the result is a
/// program, since what does not fit is left out.
pub(super) fn random(recipe: &[u8]) -> Function {
    thread_local! {
        static CASES: Vec<(&'static dyn Op, Case)> =
            ops::ALL.iter().flat_map(|op| op.cases().into_iter().map(|case| (*op, case))).collect();
    }
    CASES.with(|cases| build(cases, recipe))
}

fn build(cases: &[(&'static dyn Op, Case)], recipe: &[u8]) -> Function {
    let mut recipe = Recipe(recipe.iter());
    let mut builder = FunctionBuilder::new(Opset::CoreML8);
    let state_type = StaticType::new(DType::F16, &[2, 3]);
    let state = builder.state("state", &state_type);
    let (mut values, mut states_read) = (Vec::new(), 0);
    while let Some(choice) = recipe.pair() {
        let made = match choice % 16 {
            0 => builder.ops("read_state", "read", &[("input", state.into())]),
            1 => {
                builder.ops("write_state", "write", &[("input", state.into()), ("data", recipe.one_of(&values).into())])
            }
            _ => {
                let (op, case) = &cases[choice / 16 % cases.len()];
                let args = arguments(case, &values, &mut builder, &mut recipe);
                builder.ops(op.name(), op.name(), &args)
            }
        };
        states_read += usize::from(choice % 16 == 0);
        values.extend(made.into_iter().flatten());
        if values.len() > 24 || states_read > 8 {
            break;
        }
    }
    let outputs: Vec<ValueId> = values.iter().rev().take(4).copied().collect();
    builder.finish(&outputs)
}

fn arguments<'c>(
    case: &'c Case,
    values: &[ValueId],
    builder: &mut FunctionBuilder,
    recipe: &mut Recipe<'_>,
) -> Vec<(&'c str, Arg)> {
    let mut args = Vec::new();
    for (param, given) in &case.inputs {
        let mut bound = Vec::new();
        for arg in given {
            let choice = recipe.next();
            bound.push(match arg {
                CaseArg::Const(constant) => builder.constant(param, constant.clone()),
                CaseArg::Tensor(_) if choice >= 80 && !values.is_empty() => values[usize::from(choice) % values.len()],
                CaseArg::Tensor(tensor) => {
                    let mut ty = tensor.ty.clone();
                    if let (Some(extent), true) = (ty.shape.get_mut(usize::from(choice % 4)), choice < 10) {
                        *extent = 1 + usize::from(choice % 5);
                    }
                    builder.input(param, TensorType::from(&ty))
                }
            });
        }
        args.push((*param, Arg::Values(bound.into_iter().collect())));
    }
    args
}

/// Decisions, read off bytes; zeros when they are used up.
struct Recipe<'a>(std::slice::Iter<'a, u8>);

impl Recipe<'_> {
    fn next(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    fn pair(&mut self) -> Option<usize> {
        let (low, high) = (self.0.next()?, self.0.next()?);
        Some(usize::from(u16::from_le_bytes([*low, *high])))
    }

    /// One of the values; where there is none, the first that there will be, which is refused.
    fn one_of(&mut self, values: &[ValueId]) -> ValueId {
        let choice = usize::from(self.next());
        values.get(choice % values.len().max(1)).copied().unwrap_or(ValueId(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_cases_make_valid_programs() {
        let programs = cases();
        let all: usize = ops::ALL.iter().map(|op| op.cases().len()).sum();
        assert!(programs.len() * 10 > all * 7, "{} of {all}", programs.len());
        let invalid = programs.iter().filter(|(_, program)| !anemone_mil::verify::verify(program).is_empty());
        let invalid: Vec<&str> = invalid.map(|(name, _)| name.as_str()).collect();
        assert!(invalid.is_empty(), "{invalid:?}");
    }
}
