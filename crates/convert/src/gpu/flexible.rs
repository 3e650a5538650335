//! One function for all numbers of tokens, from two that were built for different ones: extents that differ are left open.

use std::collections::HashSet;

use anemone_mil::types::{DType, Type};
use anemone_mil::{Argument, Const, Dim, Function, TensorType, ValueId};

use crate::error::{ConvertError, Result};

/// The function that `one` and `other` are cases of.
pub(super) fn merge(mut one: Function, other: &Function) -> Result<Function> {
    let differ = |what: &str, name: &str| ConvertError::Internal {
        problem: format!("{what} `{name}` depends on the number of tokens in a way that no flexible shape can tell"),
    };
    if one.values.len() != other.values.len() || one.body.ops.len() != other.body.ops.len() {
        return Err(differ("function", super::FUNCTION));
    }
    for (a, b) in one.values.iter_mut().zip(&other.values) {
        a.ty = merge_types(&a.ty, &b.ty).filter(|_| a.name == b.name).ok_or_else(|| differ("value", &a.name))?;
    }
    let shapes = shapes_of_reshapes(&one);
    for (a, b) in one.body.ops.iter_mut().zip(&other.body.ops) {
        let name = a.outputs.first().map(|id| one.values[id.index()].name.clone()).unwrap_or_default();
        if a.name_of_kind != b.name_of_kind || a.outputs != b.outputs {
            return Err(differ("operation", &name));
        }
        let Some(Const::Tensor(constant)) = a.attributes.get_mut("val") else { continue };
        let Some(Const::Tensor(twin)) = b.attributes.get("val") else { return Err(differ("constant", &name)) };
        if constant.ty != twin.ty {
            return Err(differ("constant", &name));
        }
        if constant.ty.dtype != DType::I32 || constant.deferred.is_some() || constant.bytes == twin.bytes {
            continue;
        }
        // Of the new shape of a reshape, one extent may follow from the others.
        let n = constant.ty.elements();
        let extents = constant.ints(0..n).zip(twin.ints(0..n)).map(|(a, b)| if a == b { a } else { -1 });
        let extents: Vec<i64> = extents.collect();
        let is_shape = a.outputs.first().is_some_and(|id| shapes.contains(id));
        if !is_shape || extents.iter().filter(|&&n| n == -1).count() > 1 {
            return Err(differ("constant", &name));
        }
        let Const::Tensor(merged) = Const::ints(DType::I32, &constant.ty.shape.clone(), &extents) else { continue };
        *constant = merged;
    }
    Ok(one)
}

/// The values that are used as the shapes of reshapes, and as nothing else.
fn shapes_of_reshapes(f: &Function) -> HashSet<ValueId> {
    let (mut shapes, mut others) = (HashSet::new(), HashSet::new());
    for op in &f.body.ops {
        for (param, args) in &op.inputs {
            let set = if op.name_of_kind == "reshape" && param == "shape" { &mut shapes } else { &mut others };
            set.extend(args.iter().filter_map(|arg| match arg {
                Argument::Value(id) => Some(*id),
                Argument::Literal(_) => None,
            }));
        }
    }
    shapes.retain(|id| !others.contains(id));
    shapes
}

fn merge_types(a: &Type, b: &Type) -> Option<Type> {
    let (Type::Tensor(x), Type::Tensor(y)) = (a, b) else { return (a == b).then(|| a.clone()) };
    let (Some(from), Some(to)) = (&x.shape, &y.shape) else { return None };
    if x.dtype != y.dtype || from.len() != to.len() {
        return None;
    }
    let shape = from.iter().zip(to).map(|(a, b)| if a == b { *a } else { Dim::Unknown }).collect();
    Some(Type::Tensor(TensorType { dtype: x.dtype, shape: Some(shape) }))
}
