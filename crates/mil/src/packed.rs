//! Constants that stay compressed until a kernel reads them.

use std::ops::Range;
use std::sync::Arc;

use crate::constant::TensorConst;
use crate::numbers::Numbers;
use crate::types::{Class, StaticType};

/// A constant tensor as it is stored, with how to read it.
#[derive(Clone, Debug)]
pub enum Packed {
    /// Elements as they are.
    Plain(TensorConst),
    /// A compressed tensor, by the operation that decompresses it.
    Compressed(Arc<dyn Compressed>),
}

/// A compressed tensor: what one of the `constexpr_…` operations says of its operands.
pub trait Compressed: Send + Sync + std::fmt::Debug {
    /// The type after decompression.
    fn ty(&self) -> &StaticType;

    /// Writes elements `range` (row-major) into `out`, which has as many elements.
    fn decode(&self, range: Range<usize>, out: &mut [f32]);

    /// What it is made of, for kernels that work on the packed form.
    fn form(&self) -> Form<'_> {
        Form::Other
    }
}

/// The make of a compressed tensor.
#[derive(Clone, Copy, Debug)]
pub enum Form<'a> {
    /// `scale · (data − offset)`, a scale and an offset for each block.
    Scaled {
        /// Integer (or floating) elements.
        data: &'a TensorConst,
        /// Blocks along each axis: they divide its extent evenly.
        blocks: &'a [usize],
        /// A scale for each block, row-major.
        scale: &'a Numbers,
        /// An offset for each block.
        offset: Option<&'a Numbers>,
    },
    /// `table[index]`, a table for each group.
    Palette {
        /// Unsigned elements of as many bits as a table has entries, in powers of two.
        indices: &'a TensorConst,
        /// Groups along each axis: they divide its extent evenly.
        groups: &'a [usize],
        /// The entries of the tables, group by group, row-major.
        tables: &'a [f32],
    },
    /// None of these: only [`Compressed::decode`] reads it.
    Other,
}

impl Packed {
    /// The type after decompression.
    #[must_use]
    pub fn ty(&self) -> &StaticType {
        match self {
            Packed::Plain(t) => &t.ty,
            Packed::Compressed(c) => c.ty(),
        }
    }

    /// Writes elements `range` (row-major) into `out`, which has as many elements.
    ///
    /// # Panics
    /// If the range is out of bounds or the elements are text.
    pub fn decode(&self, range: Range<usize>, out: &mut [f32]) {
        assert_eq!(range.len(), out.len(), "a place for each element");
        match self {
            Packed::Compressed(c) => c.decode(range, out),
            Packed::Plain(t) if t.ty.dtype.class() == Class::Float => {
                out.iter_mut().zip(t.floats(range)).for_each(|(o, v)| *o = v);
            }
            Packed::Plain(t) => out.iter_mut().zip(t.ints(range)).for_each(|(o, v)| *o = v as f32),
        }
    }

    /// Bytes that the packed form takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Packed::Plain(t) => t.bytes.len(),
            Packed::Compressed(c) => match c.form() {
                Form::Scaled { data, scale, offset, .. } => {
                    data.bytes.len() + scale.bytes() + offset.map_or(0, Numbers::bytes)
                }
                Form::Palette { indices, tables, .. } => indices.bytes.len() + 4 * tables.len(),
                Form::Other => c.ty().elements() * c.ty().dtype.bits() / 8,
            },
        }
    }
}
