//! Weights by element type and bytes.

use std::collections::{BTreeMap, BTreeSet};

use anemone_mil::{Argument, Block, Const, Program, TensorConst};
use serde::Serialize;

/// The constants of a program, each weight file's blob counted once, however many functions use it.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Weights {
    /// Bytes of all of them.
    pub(super) bytes: u64,
    pub(super) tensors: usize,
    /// In weight files.
    pub(super) stored: BTreeMap<&'static str, Sum>,
    /// In the program itself.
    pub(super) inline: BTreeMap<&'static str, Sum>,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct Sum {
    pub(super) tensors: usize,
    pub(super) elements: u64,
    pub(super) bytes: u64,
}

impl Weights {
    pub(super) fn of(program: &Program) -> Self {
        let mut all = Self::default();
        let mut seen = BTreeSet::new();
        for f in program.functions.values() {
            all.block(&f.body, &mut seen);
        }
        all
    }

    fn block<'p>(&mut self, block: &'p Block, seen: &mut BTreeSet<(&'p str, u64)>) {
        for op in &block.ops {
            let literals = op.inputs.iter().flat_map(|(_, args)| args).filter_map(|arg| match arg {
                Argument::Literal(c) => Some(c),
                Argument::Value(_) => None,
            });
            let attributes = op.attributes.iter().filter(|(name, _)| *name != "name").map(|(_, c)| c);
            attributes.chain(literals).for_each(|c| self.constant(c, seen));
            op.blocks.iter().for_each(|block| self.block(block, seen));
        }
    }

    fn constant<'p>(&mut self, c: &'p Const, seen: &mut BTreeSet<(&'p str, u64)>) {
        match c {
            Const::Tensor(t) if t.strings.is_empty() => self.tensor(t, seen),
            Const::Tensor(_) => {}
            Const::List(_, all) | Const::Tuple(all) => all.iter().for_each(|c| self.constant(c, seen)),
            Const::Dictionary(_, _, entries) => entries.iter().for_each(|(_, c)| self.constant(c, seen)),
        }
    }

    fn tensor<'p>(&mut self, t: &'p TensorConst, seen: &mut BTreeSet<(&'p str, u64)>) {
        if t.blob.as_ref().is_some_and(|b| !seen.insert((&b.file, b.offset))) {
            return;
        }
        let sums = if t.blob.is_some() { &mut self.stored } else { &mut self.inline };
        let sum = sums.entry(t.ty.dtype.name()).or_default();
        sum.tensors += 1;
        sum.elements += t.ty.elements() as u64;
        sum.bytes += t.bytes.len() as u64;
        self.tensors += 1;
        self.bytes += t.bytes.len() as u64;
    }
}
