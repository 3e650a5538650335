//! A function with some of its types and constants changed, without a copy of the rest.

use std::collections::HashMap;

use anemone_mil::program::Operation;
use anemone_mil::types::Type;
use anemone_mil::{Const, Function, ValueId};

/// A function, and what differs from it.
#[derive(Debug)]
pub(crate) struct Variant<'f> {
    /// The function.
    pub function: &'f Function,
    /// Declared types in place of its own.
    pub types: HashMap<ValueId, Type>,
    /// Constants in place of those of its operations.
    pub constants: HashMap<usize, Const>,
}

impl<'f> From<&'f Function> for Variant<'f> {
    fn from(function: &'f Function) -> Self {
        Self { function, types: HashMap::new(), constants: HashMap::new() }
    }
}

impl Variant<'_> {
    /// The declared type of a value.
    pub(crate) fn ty(&self, id: ValueId) -> &Type {
        self.types.get(&id).unwrap_or_else(|| &self.function.value(id).ty)
    }

    /// The constant that the operation of this index gives, if it gives one.
    pub(crate) fn constant<'a>(&'a self, index: usize, op: &'a Operation) -> Option<&'a Const> {
        self.constants.get(&index).or_else(|| op.constant())
    }

    /// Every constant of the function's own block, indexed by value.
    pub(crate) fn by_value(&self) -> Vec<Option<&Const>> {
        let mut all = self.function.constants();
        for (&op, c) in &self.constants {
            if let Some(&id) = self.function.body.ops[op].outputs.first() {
                all[id.index()] = Some(c);
            }
        }
        all
    }
}
