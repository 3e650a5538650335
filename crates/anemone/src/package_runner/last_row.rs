//! Logits of the last token alone, of a function that gives those of every token: its last matrix, the largest of a small
//! model, then is multiplied with one row.

use std::collections::BTreeMap;

use anemone_mil::program::{Argument, Kind, Operation};
use anemone_mil::types::{DType, Dim, TensorType, Type};
use anemone_mil::{Const, Function, ValueId, ops};

/// Operations that treat each element alone, or with a single number.
const ALONE: [&str; 7] = ["cast", "identity", "tanh", "mul", "real_div", "add", "sub"];
/// The parameters of products with the rows of their first operand.
const PRODUCTS: [(&str, &str); 2] = [("linear", "weight"), ("matmul", "y")];

/// The function with the output (1, tokens, n) made of its last row, (1, 1, n). None where something else than a product with
/// a matrix gives it.
pub(super) fn last_row(function: &Function, output: &str) -> Option<Function> {
    let mut f = function.clone();
    let mut id = *f.body.outputs.iter().find(|&&id| f.value(id).name == output)?;
    let mut on_the_way = Vec::new();
    loop {
        row_of(&f, id)?;
        on_the_way.push(id);
        (uses(&f, id) == 1).then_some(())?;
        let at = f.body.ops.iter().position(|op| op.outputs == [id])?;
        let op = &f.body.ops[at];
        let x = values(&f, op);
        match PRODUCTS.iter().find(|(kind, _)| *kind == op.name_of_kind) {
            Some((_, matrix)) => {
                let is_matrix =
                    |id: &ValueId| f.value(*id).ty.tensor().and_then(|t| Some(t.shape.as_ref()?.len() == 2));
                let others =
                    op.args(matrix).iter().all(|a| matches!(a, Argument::Value(id) if is_matrix(id) == Some(true)));
                let ([Argument::Value(x)], true) = (op.args("x"), others && op.args("transpose_x").is_empty()) else {
                    return None;
                };
                let x = *x;
                insert(&mut f, at, x)?;
                break;
            }
            None if ALONE.contains(&op.name_of_kind.as_str()) => match x[..] {
                [x] => id = x,
                _ => return None,
            },
            None => return None,
        }
    }
    for id in on_the_way {
        if let Type::Tensor(TensorType { shape: Some(dims), .. }) = &mut f.values[id.index()].ty {
            dims[1] = Dim::Known(1);
        }
    }
    Some(f)
}

/// The type (1, tokens, n) of a value.
fn row_of(f: &Function, id: ValueId) -> Option<&TensorType> {
    let ty = f.value(id).ty.tensor()?;
    matches!(ty.shape.as_deref()?, [Dim::Known(1), _, _]).then_some(ty)
}

fn uses(f: &Function, id: ValueId) -> usize {
    let arguments = f.body.ops.iter().flat_map(|op| &op.inputs).flat_map(|(_, all)| all);
    let there = arguments.filter(|argument| matches!(argument, Argument::Value(used) if *used == id)).count();
    there + f.body.outputs.iter().filter(|&&used| used == id).count()
}

/// The operands of an operation that are no single numbers.
fn values(f: &Function, op: &Operation) -> Vec<ValueId> {
    let all = op.inputs.iter().flat_map(|(_, all)| all).filter_map(|argument| match argument {
        Argument::Value(id) => Some(*id),
        Argument::Literal(_) => None,
    });
    let single = |id: &ValueId| {
        let ty = f.value(*id).ty.tensor();
        ty.and_then(|ty| ty.to_static()).is_some_and(|ty| ty.elements() == 1)
    };
    all.filter(|id| !single(id)).collect()
}

/// Has the operation `at` take the last row of its operand `x`.
fn insert(f: &mut Function, at: usize, x: ValueId) -> Option<()> {
    let ty = row_of(f, x)?.clone();
    let shape = ty.shape.as_deref()?;
    let row = TensorType { shape: Some([shape[0], Dim::Known(1), shape[2]].into_iter().collect()), ..ty };
    let name = format!("{}@last", f.value(x).name);
    let last = f.add_value(name.clone(), Type::Tensor(row));
    for argument in f.body.ops[at].inputs.iter_mut().flat_map(|(_, all)| all) {
        if matches!(argument, Argument::Value(id) if *id == x) {
            *argument = Argument::Value(last);
        }
    }
    let corner = |axis: i64| Argument::Literal(Const::ints(DType::I32, &[3], &[0, axis, 0]));
    let inputs = [
        ("x", Argument::Value(x)),
        ("begin", corner(-1)),
        ("end", corner(0)),
        ("end_mask", Argument::Literal(Const::from([true, true, true]))),
    ];
    let slice = Operation {
        name_of_kind: "slice_by_index".to_owned(),
        kind: ops::find("slice_by_index").map_or(Kind::Unknown, Kind::Op),
        inputs: inputs.into_iter().map(|(param, argument)| (param.to_owned(), vec![argument])).collect(),
        outputs: vec![last],
        blocks: Vec::new(),
        attributes: BTreeMap::from([("name".to_owned(), Const::from(name.as_str()))]),
    };
    f.body.ops.insert(at, slice);
    Some(())
}
