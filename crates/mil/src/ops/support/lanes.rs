//! Lanes: the elements of a tensor that differ only in their indices along some chosen axes. Reductions, softmax and norms
//! work on one lane after the other.

use std::ops::Range;

use smallvec::SmallVec;

use super::dims;
use crate::op::{OpError, Operands};

/// Which axes a lane runs along, by axis.
pub type Axes = SmallVec<[bool; 6]>;

/// The axes that parameter `param` lists, or all if it was left out. Negative ones count from the end.
///
/// # Errors
/// If they are not known, one is out of range or named twice.
pub fn axes(x: &dyn Operands, param: usize, rank: usize) -> Result<Axes, OpError> {
    if !x.has(param) {
        return Ok(Axes::from_elem(true, rank));
    }
    let mut chosen = Axes::from_elem(false, rank);
    dims::axes(x, param, rank)?.into_iter().for_each(|axis| chosen[axis] = true);
    Ok(chosen)
}

/// The one axis that parameter `param` names, or the last if it was left out.
///
/// # Errors
/// If it is not known or out of range.
pub fn axis_or_last(x: &dyn Operands, param: usize, rank: usize) -> Result<Axes, OpError> {
    let mut chosen = Axes::from_elem(false, rank);
    chosen[dims::axis_or(x, param, rank, -1)?] = true;
    Ok(chosen)
}

/// Extent and stride in elements, outermost first; axes that can be walked through without a jump count as one.
type Walk = SmallVec<[(usize, usize); 6]>;

/// All lanes of a tensor.
#[derive(Debug)]
pub struct Lanes {
    across: Walk,
    along: Walk,
    len: usize,
}

/// One lane.
#[derive(Clone, Copy, Debug)]
pub struct Lane<'a> {
    base: usize,
    along: &'a [(usize, usize)],
    len: usize,
}

impl Lanes {
    /// The lanes along `axes` of a tensor of shape `shape`.
    #[must_use]
    pub fn new(shape: &[usize], axes: &[bool]) -> Self {
        let (mut across, mut along) = (Walk::new(), Walk::new());
        // Products can only overflow where another extent is 0, and then no element is ever looked at.
        let mut stride = 1usize;
        let mut len = 1usize;
        for (&extent, &chosen) in shape.iter().zip(axes).rev() {
            let walk = if chosen { &mut along } else { &mut across };
            match walk.last_mut() {
                Some((inner, step)) if stride == inner.wrapping_mul(*step) => *inner = inner.wrapping_mul(extent),
                _ if extent != 1 => walk.push((extent, stride)),
                _ => {}
            }
            len = if chosen { len.wrapping_mul(extent) } else { len };
            stride = stride.wrapping_mul(extent);
        }
        across.reverse();
        along.reverse();
        Self { across, along, len }
    }

    /// Calls `f` with each lane and its index, in row-major order of the axes that are not chosen.
    pub fn for_each(&self, mut f: impl FnMut(usize, Lane<'_>)) {
        let mut index = 0;
        walk(&self.across, 0, &mut |base| {
            f(index, Lane { base, along: &self.along, len: self.len });
            index += 1;
        });
    }
}

/// Calls `f` with each offset, in row-major order.
fn walk(axes: &[(usize, usize)], base: usize, f: &mut impl FnMut(usize)) {
    match axes {
        [] => f(base),
        &[(extent, stride)] => (0..extent).for_each(|i| f(base + i * stride)),
        [(extent, stride), inner @ ..] => (0..*extent).for_each(|i| walk(inner, base + i * stride, f)),
    }
}

impl Lane<'_> {
    /// How many elements it has.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Where it lies, if without gaps.
    #[must_use]
    pub fn range(&self) -> Option<Range<usize>> {
        matches!(self.along, [] | [(_, 1)]).then(|| self.base..self.base + self.len)
    }

    /// Calls `f` with the position in the lane (row-major) and the index in the tensor of each element.
    pub fn for_each(&self, mut f: impl FnMut(usize, usize)) {
        let mut position = 0;
        walk(self.along, self.base, &mut |at| {
            f(position, at);
            position += 1;
        });
    }

    /// Combines the elements in order.
    pub fn fold<T: Copy, A: Copy>(&self, data: &[T], init: A, f: impl Fn(A, T) -> A) -> A {
        let mut all = init;
        walk(self.along, self.base, &mut |at| all = f(all, data[at]));
        all
    }

    /// The sum of `f` of the elements. A lane without gaps is summed in 16 strands.
    pub fn sum(&self, data: &[f32], f: impl Fn(f32) -> f32) -> f32 {
        let Some(range) = self.range() else {
            return self.fold(data, 0.0, |sum, v| sum + f(v));
        };
        let (chunks, rest) = data[range].as_chunks::<16>();
        let mut strands = [0.0; 16];
        for chunk in chunks {
            for (strand, &v) in strands.iter_mut().zip(chunk) {
                *strand += f(v);
            }
        }
        strands.iter().sum::<f32>() + rest.iter().map(|&v| f(v)).sum::<f32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(shape: &[usize], axes: &[bool]) -> Vec<Vec<usize>> {
        let mut all = Vec::new();
        Lanes::new(shape, axes).for_each(|i, lane| {
            assert_eq!(i, all.len());
            let mut one = Vec::new();
            lane.for_each(|position, at| {
                assert_eq!(position, one.len());
                one.push(at);
            });
            assert_eq!(one.len(), lane.len());
            if let Some(range) = lane.range() {
                assert_eq!(one, range.collect::<Vec<_>>());
            }
            all.push(one);
        });
        all
    }

    #[test]
    fn lanes_run_along_the_chosen_axes() {
        assert_eq!(lanes(&[2, 3], &[false, true]), [[0, 1, 2], [3, 4, 5]]);
        assert_eq!(lanes(&[2, 3], &[true, false]), [[0, 3], [1, 4], [2, 5]]);
        assert_eq!(lanes(&[2, 2, 2], &[true, false, true]), [[0, 1, 4, 5], [2, 3, 6, 7]]);
        assert_eq!(lanes(&[2, 2, 2], &[false, true, false]), [[0, 2], [1, 3], [4, 6], [5, 7]]);
        assert_eq!(lanes(&[2, 1, 2], &[true, false, true]), [[0, 1, 2, 3]]);
        assert_eq!(lanes(&[2, 1, 2], &[false, true, false]), [[0], [1], [2], [3]]);
        assert_eq!(lanes(&[], &[]), [[0]]);
    }

    #[test]
    fn an_axis_without_elements_makes_empty_lanes_or_none() {
        assert_eq!(lanes(&[2, 0], &[false, true]), [[0usize; 0], []]);
        assert_eq!(lanes(&[2, 0], &[true, false]), [[0usize; 0]; 0]);
        assert_eq!(lanes(&[0, usize::MAX, usize::MAX], &[false, true, true]), [[0usize; 0]; 0]);
    }

    #[test]
    fn whole_tensors_are_one_range() {
        Lanes::new(&[2, 3, 4], &[true; 3]).for_each(|_, lane| assert_eq!(lane.range(), Some(0..24)));
        let mut ranges = Vec::new();
        Lanes::new(&[2, 3, 4], &[false, true, true]).for_each(|_, lane| ranges.push(lane.range()));
        assert_eq!(ranges, [Some(0..12), Some(12..24)]);
    }
}
