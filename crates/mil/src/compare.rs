//! When two programs are the same: same functions, operations, names, types and constants in the same order. Ids of values,
//! the order of an operation's named arguments and the place where a constant is stored do not matter.

use std::sync::Arc;

use crate::constant::{Const, TensorConst};
use crate::program::{Argument, Block, Function, Operation, ValueId};

impl PartialEq for TensorConst {
    fn eq(&self, other: &Self) -> bool {
        let same_maker = match (&self.deferred, &other.deferred) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        same_maker && self.ty == other.ty && self.strings == other.strings && same_elements(self, other)
    }
}

/// Whether the packed elements of two constants of one type are the same; bits behind the last element do not matter.
fn same_elements(a: &TensorConst, b: &TensorConst) -> bool {
    let used = a.ty.elements() * a.ty.dtype.bits() % 8;
    match (a.bytes.split_last(), b.bytes.split_last()) {
        (Some((x, a)), Some((y, b))) if used != 0 => a == b && (x ^ y) << (8 - used) == 0,
        _ => a.bytes == b.bytes,
    }
}

impl PartialEq for Const {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Const::Tensor(a), Const::Tensor(b)) => a == b,
            (Const::List(t, a), Const::List(u, b)) => t == u && a == b,
            (Const::Tuple(a), Const::Tuple(b)) => a == b,
            (Const::Dictionary(k, v, a), Const::Dictionary(l, w, b)) => (k, v, a) == (l, w, b),
            _ => false,
        }
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        let pair = Pair(self, other);
        self.opset == other.opset
            && self.attributes == other.attributes
            && self.ports == other.ports
            && pair.values(&self.inputs, &other.inputs)
            && pair.block(&self.body, &other.body)
    }
}

/// Two functions under comparison.
struct Pair<'a>(&'a Function, &'a Function);

impl Pair<'_> {
    fn value(&self, a: ValueId, b: ValueId) -> bool {
        self.0.values.get(a.index()) == self.1.values.get(b.index())
    }

    fn values(&self, a: &[ValueId], b: &[ValueId]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| self.value(a, b))
    }

    fn block(&self, a: &Block, b: &Block) -> bool {
        self.values(&a.inputs, &b.inputs)
            && self.values(&a.outputs, &b.outputs)
            && a.attributes == b.attributes
            && a.ops.len() == b.ops.len()
            && a.ops.iter().zip(&b.ops).all(|(a, b)| self.operation(a, b))
    }

    fn operation(&self, a: &Operation, b: &Operation) -> bool {
        a.name_of_kind == b.name_of_kind
            && a.attributes == b.attributes
            && self.values(&a.outputs, &b.outputs)
            && a.inputs.len() == b.inputs.len()
            && a.inputs.iter().all(|(param, args)| {
                b.inputs.iter().find(|(p, _)| p == param).is_some_and(|(_, other)| self.arguments(args, other))
            })
            && a.blocks.len() == b.blocks.len()
            && a.blocks.iter().zip(&b.blocks).all(|(a, b)| self.block(a, b))
    }

    fn arguments(&self, a: &[Argument], b: &[Argument]) -> bool {
        a.len() == b.len()
            && a.iter().zip(b).all(|pair| match pair {
                (Argument::Value(a), Argument::Value(b)) => self.value(*a, *b),
                (Argument::Literal(a), Argument::Literal(b)) => a == b,
                _ => false,
            })
    }
}
