//! What a function for many tokens does besides: whether it picks the last row, and nothing else.

use std::collections::{HashMap, HashSet};

use anemone_mil::operands::{Bound, Operand, apply};
use anemone_mil::types::{Class, StaticType};
use anemone_mil::{Argument, Buffer, Function, Tensor, ValueId};

use super::{Change, Place};
use crate::variant::Variant;

/// A run of operations with one result.
pub(super) struct Picked<'f> {
    ops: &'f [usize],
    result: ValueId,
    /// What it takes that is no input of the function: the rows.
    rows: ValueId,
    /// The axis of the rows.
    axis: usize,
}

/// More elements than this are not tried.
const TRIED: usize = 1 << 22;

/// Constants that only these operations use: where they name the end of the tokens or the last of them, they follow the
/// width. Whether that is so is [`Picked::is_last`]'s to find out.
pub(super) fn constants(function: &Function, ops: &[usize], known: &[Change], width: usize) -> Vec<Change> {
    let mut changes = Vec::new();
    let used = |op: usize| {
        let inputs = function.body.ops[op].inputs.iter().flat_map(|(_, args)| args);
        inputs.filter_map(|arg| if let Argument::Value(id) = arg { Some(*id) } else { None }).collect::<Vec<_>>()
    };
    let extra: Vec<ValueId> = ops.iter().flat_map(|&op| used(op)).collect();
    let others: HashSet<ValueId> = (0..function.body.ops.len()).filter(|op| !ops.contains(op)).flat_map(used).collect();
    for (op, constant) in function.body.ops.iter().enumerate() {
        let Some(c) = constant.constant().and_then(|c| c.tensor()).filter(|c| c.ty.dtype.is_int()) else { continue };
        if !constant.outputs.iter().all(|id| extra.contains(id) && !others.contains(id)) {
            continue;
        }
        for (index, value) in c.ints(0..c.ty.elements()).enumerate() {
            let place = Place::Element { op, index };
            let follows = value == width as i64 || value == width as i64 - 1;
            if follows && known.iter().all(|change| change.place != place) {
                changes.push(Change { place, base: value, slope: 1 });
            }
        }
    }
    changes
}

impl<'f> Picked<'f> {
    /// The operations, if besides inputs of the function they take one thing.
    pub(super) fn new(function: &Function, ops: &'f [usize], result: ValueId, changes: &[Change]) -> Option<Self> {
        let made: Vec<ValueId> = ops.iter().flat_map(|&op| function.body.ops[op].outputs.iter().copied()).collect();
        let constants = function.constants();
        let mut rows = None;
        for arg in ops.iter().flat_map(|&op| function.body.ops[op].inputs.iter().flat_map(|(_, args)| args)) {
            let Argument::Value(id) = arg else { continue };
            let known = made.contains(id) || constants[id.index()].is_some() || function.inputs.contains(id);
            if !known && *rows.get_or_insert(*id) != *id {
                return None;
            }
        }
        let rows = rows?;
        let mut axes = changes.iter().filter_map(|change| match change.place {
            Place::Extent { value, axis } if value == rows && change.slope == 1 => Some(axis),
            _ => None,
        });
        let axis = axes.next().filter(|_| axes.next().is_none())?;
        Some(Self { ops, result, rows, axis })
    }

    /// Whether, of rows of which each is its own number, it gives the last alone; the function being at so many tokens.
    pub(super) fn is_last(&self, function: &Variant<'_>, width: usize) -> bool {
        self.pick(function).is_some_and(|picked| {
            picked.as_f32().is_some_and(|v| !v.is_empty() && v.iter().all(|&x| x == (width - 1) as f32))
        })
    }

    fn pick(&self, variant: &Variant<'_>) -> Option<Tensor> {
        let function = variant.function;
        let constants = variant.by_value();
        let mut values: HashMap<ValueId, Tensor> = HashMap::new();
        values.insert(self.rows, numbered(&variant.ty(self.rows).tensor()?.to_static()?, self.axis)?);
        for &op in self.ops {
            let operation = &function.body.ops[op];
            let known = operation.op()?;
            for (_, args) in &operation.inputs {
                for arg in args {
                    let Argument::Value(id) = arg else { continue };
                    if constants[id.index()].is_none() && !values.contains_key(id) {
                        values.insert(*id, counting(&variant.ty(*id).tensor()?.to_static()?)?);
                    }
                }
            }
            let mut bound = Bound::new(known);
            for (param, args) in &operation.inputs {
                for arg in args {
                    let operand = match arg {
                        Argument::Literal(c) => Operand::from_const(c).ok()?,
                        Argument::Value(id) => match constants[id.index()] {
                            Some(c) => Operand::from_const(c).ok()?,
                            None => Operand::Known(&values[id]),
                        },
                    };
                    bound.bind(known, param, [operand]).ok()?;
                }
            }
            bound.check(known).ok()?;
            let results = apply(known, &bound).ok()?;
            for (&id, result) in operation.outputs.iter().zip(results) {
                let declared = variant.ty(id).tensor()?;
                declared.admits(&result.ty).then_some(())?;
                values.insert(id, result);
            }
        }
        values.remove(&self.result)
    }
}

/// Elements that are each the number of their row.
fn numbered(ty: &StaticType, axis: usize) -> Option<Tensor> {
    let n = ty.elements();
    if n > TRIED || ty.dtype.class() != Class::Float {
        return None;
    }
    let inner: usize = ty.shape[axis + 1..].iter().product();
    let values = (0..n).map(|i| (i / inner % ty.shape[axis]) as f32).collect();
    Some(Tensor { ty: ty.clone(), data: Buffer::F32(values) })
}

/// An input of the function, of integers that count up.
fn counting(ty: &StaticType) -> Option<Tensor> {
    let n = ty.elements();
    let fits = ty.dtype.class() == Class::Int && n <= TRIED;
    fits.then(|| Tensor { ty: ty.clone(), data: Buffer::I32((7..).take(n).collect()) })
}
