//! Compressed constants by their make: scaled integers and palettes.

use std::ops::Range;

use crate::constant::TensorConst;
use crate::lower::LowerOperands;
use crate::numbers::Numbers;
use crate::op::{OpError, Operands};
use crate::packed::{Compressed, Form, Packed};
use crate::types::{Class, DType, Shape, StaticType};

/// `scale · (data − offset)` in blocks.
#[derive(Debug)]
pub struct Scaled {
    ty: StaticType,
    data: TensorConst,
    /// Blocks along each axis.
    blocks: Shape,
    scale: Numbers,
    offset: Option<Numbers>,
}

/// Indices into palettes.
#[derive(Debug)]
pub struct Palettes {
    ty: StaticType,
    indices: TensorConst,
    /// Groups along each axis.
    groups: Shape,
    /// Entries of all groups, row-major.
    tables: Vec<f32>,
}

/// The stored constant of a parameter, if it is one and is not compressed itself.
pub(crate) fn stored(x: &dyn LowerOperands, param: usize) -> Option<TensorConst> {
    match x.packed_at(param, 0)? {
        Packed::Plain(t) if t.deferred.is_none() && t.ty.dtype.class() != Class::String => Some(t),
        _ => None,
    }
}

/// All elements of a small constant parameter.
pub(crate) fn values(x: &dyn LowerOperands, param: usize) -> Option<Vec<f32>> {
    let packed = x.packed_at(param, 0)?;
    let mut all = vec![0.0; packed.ty().elements()];
    packed.decode(0..all.len(), &mut all);
    Some(all)
}

/// The elements of a constant parameter, which are read when they are wanted.
pub(crate) fn numbers(x: &dyn LowerOperands, param: usize) -> Option<Numbers> {
    match stored(x, param) {
        Some(constant) => Some(constant.into()),
        None => values(x, param).map(Numbers::from),
    }
}

impl Scaled {
    /// Data with a scale and an offset for each block; `blocks` along each axis of `data` divide its extents.
    #[must_use]
    pub fn new(
        dtype: DType,
        data: TensorConst,
        blocks: &[usize],
        scale: Numbers,
        offset: Option<Numbers>,
    ) -> Option<Self> {
        let count: usize = blocks.iter().product();
        let divides = data.ty.shape.len() == blocks.len()
            && data.ty.shape.iter().zip(blocks).all(|(&n, &b)| b > 0 && n.is_multiple_of(b));
        if !divides || scale.len() != count || offset.as_ref().is_some_and(|o| o.len() != count) {
            return None;
        }
        let ty = StaticType { dtype, shape: data.ty.shape.clone() };
        Some(Self { ty, data, blocks: blocks.into(), scale, offset })
    }
}

impl Compressed for Scaled {
    fn ty(&self) -> &StaticType {
        &self.ty
    }

    fn decode(&self, range: Range<usize>, out: &mut [f32]) {
        let mut walk = Walk::new(&self.ty.shape, &self.blocks, range.start);
        let (mut at, mut rest) = (range.start, out);
        while !rest.is_empty() {
            let (block, run) = walk.run(rest.len());
            let (now, later) = std::mem::take(&mut rest).split_at_mut(run);
            let (scale, offset) = (self.scale.at(block), self.offset.as_ref().map_or(0.0, |z| z.at(block)));
            if self.data.ty.dtype.is_float() {
                self.data.floats(at..at + run).zip(now).for_each(|(q, o)| *o = scale * (q - offset));
            } else {
                self.data.ints(at..at + run).zip(now).for_each(|(q, o)| *o = scale * (q as f32 - offset));
            }
            (at, rest) = (at + run, later);
        }
    }

    fn form(&self) -> Form<'_> {
        Form::Scaled { data: &self.data, blocks: &self.blocks, scale: &self.scale, offset: self.offset.as_ref() }
    }
}

impl Palettes {
    /// Indices of the bits of `indices.ty.dtype` into `tables`, `groups` along each axis. Element types of palettes of
    /// integers are not kept packed.
    #[must_use]
    pub fn new(dtype: DType, indices: TensorConst, groups: &[usize], tables: Vec<f32>) -> Option<Self> {
        let count: usize = groups.iter().product();
        let divides = indices.ty.shape.len() == groups.len()
            && indices.ty.shape.iter().zip(groups).all(|(&n, &g)| g > 0 && n.is_multiple_of(g));
        if !divides || !dtype.is_float() || tables.len() != count << indices.ty.dtype.bits() {
            return None;
        }
        let ty = StaticType { dtype, shape: indices.ty.shape.clone() };
        Some(Self { ty, indices, groups: groups.into(), tables })
    }
}

impl Compressed for Palettes {
    fn ty(&self) -> &StaticType {
        &self.ty
    }

    fn decode(&self, range: Range<usize>, out: &mut [f32]) {
        let bits = self.indices.ty.dtype.bits();
        let mut walk = Walk::new(&self.ty.shape, &self.groups, range.start);
        self.indices.ints(range).zip(out).for_each(|(i, o)| *o = self.tables[(walk.next() << bits) + i as usize]);
    }

    fn form(&self) -> Form<'_> {
        Form::Palette { indices: &self.indices, groups: &self.groups, tables: &self.tables }
    }
}

/// Walks the elements of a tensor in order, and gives the block of each.
struct Walk<'a> {
    shape: &'a [usize],
    blocks: &'a [usize],
    index: Shape,
}

impl<'a> Walk<'a> {
    fn new(shape: &'a [usize], blocks: &'a [usize], mut start: usize) -> Self {
        let mut index = Shape::from_elem(0, shape.len());
        for axis in (0..shape.len()).rev() {
            index[axis] = start % shape[axis].max(1);
            start /= shape[axis].max(1);
        }
        Self { shape, blocks, index }
    }

    /// The block of the next element.
    fn next(&mut self) -> usize {
        self.run(1).0
    }

    /// The block of the next element, and how many elements from there on, at most `most`, lie in it side by side.
    fn run(&mut self, most: usize) -> (usize, usize) {
        let mut block = 0;
        for ((&i, &n), &b) in self.index.iter().zip(self.shape).zip(self.blocks) {
            block = block * b + i / (n / b);
        }
        let mut run = 1;
        if let (Some(i), Some(&n), Some(&b)) = (self.index.last_mut(), self.shape.last(), self.blocks.last()) {
            run = (n / b - *i % (n / b)).min(most);
            *i += run - 1;
        }
        for axis in (0..self.shape.len()).rev() {
            self.index[axis] += 1;
            if self.index[axis] < self.shape[axis] {
                break;
            }
            self.index[axis] = 0;
        }
        (block, run)
    }
}

/// The error of a kernel that met an index outside its table.
pub(crate) fn outside(x: &dyn Operands, param: usize, slices: usize, found: i32) -> OpError {
    x.bad(param, format!("indices into {slices} slices"), found)
}
