//! Weights of convolutions: matrices (outputs, inputs) as the schemes store them become (outputs, inputs, 1, 1), with their scales
//! and palettes. Their bytes stay what they are.

use std::collections::HashSet;

use anemone_mil::types::Type;
use anemone_mil::{Argument, Const, Function, TensorType, ValueId};

use crate::error::{ConvertError, Result};

/// Gives the weight of every convolution four axes.
pub(super) fn give_four_axes(f: &mut Function) -> Result<()> {
    let convolutions = f.body.ops.iter().filter(|op| op.name_of_kind == "conv");
    let weights: Vec<ValueId> = convolutions.filter_map(|op| value(op.args("weight").first()?)).collect();
    let mut done = HashSet::new();
    for id in weights {
        widen(f, id, &mut done)?;
    }
    Ok(())
}

fn value(arg: &Argument) -> Option<ValueId> {
    match arg {
        Argument::Value(id) => Some(*id),
        Argument::Literal(_) => None,
    }
}

/// Widens a constant, or what decompresses constants.
fn widen(f: &mut Function, id: ValueId, done: &mut HashSet<ValueId>) -> Result<()> {
    if !done.insert(id) {
        return Ok(());
    }
    let name = f.value(id).name.clone();
    let strange = || ConvertError::Internal { problem: format!("the weight `{name}` is no matrix of constants") };
    let mut shape = f.value(id).ty.tensor().and_then(TensorType::to_static).ok_or_else(strange)?;
    match shape.shape.len() {
        // Parameters, such as the axis of vectors.
        0 | 1 => return Ok(()),
        2 => shape.shape.extend([1, 1]),
        // Palettes: (groups, groups, entries, length).
        4 => shape.shape.insert_from_slice(2, &[1, 1]),
        _ => return Err(strange()),
    }
    f.values[id.index()].ty = Type::Tensor(TensorType::from(&shape));
    let maker = f.body.ops.iter_mut().find(|op| op.outputs.contains(&id)).ok_or_else(strange)?;
    match maker.attributes.get_mut("val") {
        Some(Const::Tensor(constant)) => constant.ty.shape = shape.shape,
        Some(_) => return Err(strange()),
        None => {
            let parts: Vec<ValueId> = maker.inputs.iter().flat_map(|(_, args)| args).filter_map(value).collect();
            for part in parts {
                widen(f, part, done)?;
            }
        }
    }
    Ok(())
}
