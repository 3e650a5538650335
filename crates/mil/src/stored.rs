//! The constants of a function as they are stored, compressed ones included: for those who look at weights and run nothing.

use std::collections::HashMap;

use crate::constant::Const;
use crate::lower::{LowerOperands, PackCache};
use crate::op::{Op, Operands};
use crate::packed::Packed;
use crate::program::{Arg, Function, Operation, ValueId};
use crate::tensor::Data;
use crate::types::DType;

/// The constants of one function, by value and by name.
#[derive(Debug)]
pub struct Stored<'f> {
    function: &'f Function,
    constants: Vec<Option<&'f Const>>,
    /// The operation of the function's own block that assigns a value, by the value's name.
    by_name: HashMap<&'f str, &'f Operation>,
    cache: PackCache,
}

impl<'f> Stored<'f> {
    /// The constants of `function`.
    #[must_use]
    pub fn new(function: &'f Function) -> Self {
        let named = |op: &'f Operation| op.outputs.iter().map(move |&id| (function.value(id).name.as_str(), op));
        let by_name = function.body.ops.iter().flat_map(named).collect();
        Self { function, constants: function.constants(), by_name, cache: PackCache::default() }
    }

    /// The constant called `name`: a tensor, or what a `constexpr_…` operation over tensors gives. Nothing if it is neither.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Packed> {
        let op = self.by_name.get(name)?;
        match op.op() {
            Some(known) => known.compressed(&Arguments { all: self, operation: op, op: known }),
            None => Some(Packed::Plain(op.constant()?.tensor()?.clone())),
        }
    }

    fn constant(&self, id: ValueId) -> Option<&'f Const> {
        self.constants.get(id.index()).copied().flatten()
    }
}

/// The arguments of one operation, of which only constants are known.
struct Arguments<'s, 'f> {
    all: &'s Stored<'f>,
    operation: &'f Operation,
    op: &'static dyn Op,
}

impl Arguments<'_, '_> {
    fn argument(&self, param: usize, index: usize) -> Option<Arg<'_>> {
        self.operation.operand_args(self.op.params()[param].name).iter().nth(index)
    }

    fn constant(&self, param: usize, index: usize) -> Option<&Const> {
        match self.argument(param, index)? {
            Arg::Value(id) => self.all.constant(id),
            Arg::Literal(c) => Some(c),
        }
    }
}

impl Operands for Arguments<'_, '_> {
    fn count(&self, param: usize) -> usize {
        self.operation.operand_args(self.op.params()[param].name).len()
    }

    fn ty_at(&self, param: usize, index: usize) -> (DType, &[usize]) {
        let constant = self.constant(param, index).and_then(Const::tensor);
        constant.map_or((DType::String, &[]), |t| (t.ty.dtype, &t.ty.shape))
    }

    fn data_at(&self, _param: usize, _index: usize) -> Option<Data<'_>> {
        None
    }

    fn text_at(&self, param: usize, index: usize) -> Option<&str> {
        self.constant(param, index)?.str()
    }

    fn name_of(&self, param: usize) -> &'static str {
        self.op.params()[param].name
    }
}

impl LowerOperands for Arguments<'_, '_> {
    fn packed_at(&self, param: usize, index: usize) -> Option<Packed> {
        let argument = match self.argument(param, index)? {
            Arg::Value(id) if self.all.constant(id).is_none() => {
                return self.all.get(&self.all.function.value(id).name);
            }
            _ => self.constant(param, index)?.tensor()?,
        };
        Some(Packed::Plain(argument.clone()))
    }

    fn pack_cache(&self) -> &PackCache {
        &self.all.cache
    }
}
