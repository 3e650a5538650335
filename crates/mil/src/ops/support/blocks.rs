//! Blocks: a tensor cut along each axis into equal parts, each of which has its own scale or palette.

use smallvec::SmallVec;

use crate::op::{OpError, Operands};
use crate::tensor::Data;
use crate::types::DType;

/// Checks that `blocks`, the shape of parameter `param`, cuts every axis of `shape` into equal parts.
///
/// # Errors
/// If it does not.
pub fn check(x: &dyn Operands, param: usize, shape: &[usize], blocks: &[usize]) -> Result<(), OpError> {
    let fits = shape.len() == blocks.len()
        && !shape.is_empty()
        && shape.iter().zip(blocks).all(|(&n, &parts)| parts > 0 && n % parts == 0);
    if fits { Ok(()) } else { Err(x.bad(param, format!("a shape that divides {shape:?} axis by axis"), blocks)) }
}

/// Checks that parameter `offset`, if it was given, goes with the scales of parameter `scale`, for data of element type
/// `dtype`.
///
/// # Errors
/// If it does not.
pub fn expect_offset(x: &dyn Operands, offset: usize, scale: usize, dtype: DType) -> Result<(), OpError> {
    if !x.has(offset) {
        return Ok(());
    }
    let (found, shape) = x.ty_at(offset, 0);
    if shape == x.shape(scale) && (found.is_float() || found.is_int() && found == dtype) {
        Ok(())
    } else {
        Err(x.bad(offset, format!("{dtype} or floats of shape {:?}", x.shape(scale)), x.ty(offset)))
    }
}

/// The offset of each block.
#[derive(Clone, Copy, Debug)]
pub struct Offsets<'a>(Option<Data<'a>>);

impl<'a> Offsets<'a> {
    /// The offsets that parameter `param` holds; all 0 if it was left out.
    ///
    /// # Errors
    /// If they are not known.
    pub fn new(x: &'a dyn Operands, param: usize) -> Result<Self, OpError> {
        Ok(Self(if x.has(param) { Some(x.data(param)?) } else { None }))
    }

    /// The offset of a block.
    #[must_use]
    pub fn of(self, block: usize) -> f32 {
        match self.0 {
            Some(Data::F32(all)) => all[block],
            Some(Data::I32(all)) => all[block] as f32,
            Some(Data::Bool(_)) | None => 0.0,
        }
    }
}

/// A tensor's cut into blocks.
#[derive(Debug)]
pub struct Blocks {
    /// Extent and number of parts, outermost first. Every axis but the first has several parts.
    axes: SmallVec<[(usize, usize); 6]>,
}

impl Blocks {
    /// The cut of `shape` into `blocks` parts along each axis, which divide it.
    #[must_use]
    pub fn new(shape: &[usize], blocks: &[usize]) -> Self {
        let mut axes: SmallVec<[(usize, usize); 6]> = SmallVec::new();
        for (&extent, &parts) in shape.iter().zip(blocks) {
            match axes.last_mut() {
                // An axis in one part continues the parts of the axis before it. (Overflows only where there are no
                // elements.)
                Some((outer, _)) if parts == 1 => *outer = outer.wrapping_mul(extent),
                _ => axes.push((extent, parts)),
            }
        }
        Self { axes }
    }

    /// The block that an element belongs to; both are row-major indices.
    #[must_use]
    pub fn of(&self, element: usize) -> usize {
        let (mut rest, mut block, mut stride) = (element, 0, 1);
        for &(extent, parts) in self.axes.iter().rev() {
            block += rest % extent / (extent / parts) * stride;
            rest /= extent;
            stride *= parts;
        }
        block
    }

    /// Calls `f` with a block, the index of the first and the number of elements of each longest run in that block, in
    /// row-major order.
    pub fn runs(&self, mut f: impl FnMut(usize, usize, usize)) {
        let Some((&(extent, parts), outer)) = self.axes.split_last() else {
            return f(0, 0, 1);
        };
        if self.axes.iter().any(|a| a.0 == 0) {
            return;
        }
        let (rows, len) = (outer.iter().map(|a| a.0).product(), extent / parts);
        for row in 0..rows {
            let first = self.of(row * extent);
            (0..parts).for_each(|part| f(first + part, row * extent + part * len, len));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(shape: &[usize], blocks: &[usize]) -> Vec<(usize, usize, usize)> {
        let mut all = Vec::new();
        let cut = Blocks::new(shape, blocks);
        cut.runs(|block, start, len| {
            all.push((block, start, len));
            (start..start + len).for_each(|i| assert_eq!(cut.of(i), block, "{shape:?} {blocks:?} {i}"));
        });
        all
    }

    #[test]
    fn runs_stay_within_blocks() {
        assert_eq!(runs(&[2, 4], &[2, 2]), [(0, 0, 2), (1, 2, 2), (2, 4, 2), (3, 6, 2)]);
        assert_eq!(runs(&[4, 2], &[2, 1]), [(0, 0, 4), (1, 4, 4)]);
        assert_eq!(runs(&[2, 2], &[1, 2]), [(0, 0, 1), (1, 1, 1), (0, 2, 1), (1, 3, 1)]);
        assert_eq!(runs(&[4, 3, 1, 1], &[4, 1, 1, 1]), [(0, 0, 3), (1, 3, 3), (2, 6, 3), (3, 9, 3)]);
        assert_eq!(runs(&[2, 2, 2], &[1, 2, 1]), [(0, 0, 2), (1, 2, 2), (0, 4, 2), (1, 6, 2)]);
        assert_eq!(runs(&[2, 3], &[1, 1]), [(0, 0, 6)]);
        assert_eq!(runs(&[0, usize::MAX, usize::MAX], &[1, 1, 1]), []);
    }
}
