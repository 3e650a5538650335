//! Broadcasting: axes are aligned at the end, and an axis of extent 1 stretches.

use std::ops::Range;

use smallvec::SmallVec;

use crate::op::OpError;
use crate::types::Shape;

/// The shape that two shapes broadcast to.
///
/// # Errors
/// If an axis differs and neither extent is 1.
pub fn broadcast(a: &[usize], b: &[usize]) -> Result<Shape, OpError> {
    let rank = a.len().max(b.len());
    (0..rank)
        .map(|i| {
            let x = (i + a.len()).checked_sub(rank).map_or(1, |i| a[i]);
            let y = (i + b.len()).checked_sub(rank).map_or(1, |i| b[i]);
            match (x, y) {
                (1, n) | (n, 1) => Ok(n),
                (x, y) if x == y => Ok(x),
                _ => Err(OpError::mismatch("shapes that broadcast", format!("{a:?} and {b:?}"))),
            }
        })
        .collect()
}

/// A stretch of consecutive elements of a result of `N` operands.
#[derive(Clone, Copy, Debug)]
pub struct Run<const N: usize> {
    /// Index of the first element of the result.
    pub out: usize,
    /// How many elements of the result.
    pub len: usize,
    /// Index of the first element of each operand.
    pub at: [usize; N],
    /// How far each operand advances from one element of the result to the next: 0 or 1.
    pub step: [usize; N],
}

/// The longest runs that make up a result that `N` operands broadcast to.
#[derive(Debug)]
pub struct Runs<const N: usize> {
    /// Extents and strides of the axes around a run, outermost first.
    axes: SmallVec<[(usize, [usize; N]); 6]>,
    len: usize,
    step: [usize; N],
}

impl<const N: usize> Runs<N> {
    /// The runs of `out`, which all `shapes` broadcast to.
    #[must_use]
    pub fn new(out: &[usize], shapes: [&[usize]; N]) -> Self {
        let strides = shapes.map(|shape| strides(out, shape));
        // Axes that every operand walks through without a jump count as one.
        let mut axes: SmallVec<[(usize, [usize; N]); 6]> = SmallVec::new();
        for (axis, &extent) in out.iter().enumerate().filter(|&(_, &extent)| extent != 1) {
            let stride: [usize; N] = std::array::from_fn(|k| strides[k][axis]);
            match axes.last_mut() {
                Some((outer, steps)) if (0..N).all(|k| steps[k] == stride[k] * extent) => {
                    *outer *= extent;
                    *steps = stride;
                }
                _ => axes.push((extent, stride)),
            }
        }
        let (len, step) = axes.pop().unwrap_or((1, [0; N]));
        Self { axes, len, step }
    }

    /// Calls `f` with the runs of the elements `range` of the result, in row-major order, the first and the last one cut off at
    /// its ends.
    pub fn within(&self, range: Range<usize>, mut f: impl FnMut(Run<N>)) {
        if range.is_empty() {
            return;
        }
        let (mut rest, mut skip) = (range.start / self.len, range.start % self.len);
        let mut index: Shape = Shape::from_elem(0, self.axes.len());
        let mut at = [0; N];
        for (n, (extent, stride)) in index.iter_mut().zip(&self.axes).rev() {
            *n = rest % extent;
            rest /= extent;
            (0..N).for_each(|k| at[k] += stride[k] * *n);
        }
        let mut out = range.start;
        while out < range.end {
            let len = (self.len - skip).min(range.end - out);
            f(Run { out, len, at: std::array::from_fn(|k| at[k] + skip * self.step[k]), step: self.step });
            (out, skip) = (out + len, 0);
            for (n, (extent, stride)) in index.iter_mut().zip(&self.axes).rev() {
                *n += 1;
                (0..N).for_each(|k| at[k] += stride[k]);
                if *n < *extent {
                    break;
                }
                (0..N).for_each(|k| at[k] -= stride[k] * extent);
                *n = 0;
            }
        }
    }
}

/// Calls `f` with the longest runs that make up `out`, which all `shapes` broadcast to, in row-major order.
pub fn runs<const N: usize>(out: &[usize], shapes: [&[usize]; N], f: impl FnMut(Run<N>)) {
    if !out.contains(&0) {
        Runs::new(out, shapes).within(0..out.iter().product(), f);
    }
}

/// Computes `f` of each pair of elements of `a` and `b`, given with their shapes.
pub fn map<A: Copy, B: Copy, R>(
    (out, shape): (&mut [R], &[usize]),
    (a, a_shape): (&[A], &[usize]),
    (b, b_shape): (&[B], &[usize]),
    f: impl Fn(A, B) -> R,
) {
    runs(shape, [a_shape, b_shape], |run| along(&run, &mut out[run.out..run.out + run.len], a, b, &f));
}

/// Computes `f` of each pair of elements along one run, whose part of the result is `out`.
pub fn along<A: Copy, B: Copy, R>(run: &Run<2>, out: &mut [R], a: &[A], b: &[B], f: impl Fn(A, B) -> R) {
    let (a, b) = (&a[run.at[0]..], &b[run.at[1]..]);
    match run.step {
        [0, 0] => out.iter_mut().for_each(|r| *r = f(a[0], b[0])),
        [0, _] => out.iter_mut().zip(b).for_each(|(r, &b)| *r = f(a[0], b)),
        [_, 0] => out.iter_mut().zip(a).for_each(|(r, &a)| *r = f(a, b[0])),
        _ => out.iter_mut().zip(a).zip(b).for_each(|((r, &a), &b)| *r = f(a, b)),
    }
}

/// Strides in elements of `shape` seen as `out`: 0 along stretched axes.
#[must_use]
pub fn strides(out: &[usize], shape: &[usize]) -> Shape {
    let mut all = Shape::from_elem(0, out.len());
    let mut stride = 1;
    for i in (0..shape.len()).rev() {
        if shape[i] != 1 {
            all[i + out.len() - shape.len()] = stride;
        }
        stride *= shape[i];
    }
    all
}

/// Row-major strides in elements.
#[must_use]
pub fn row_major(shape: &[usize]) -> Shape {
    let mut all = Shape::from_elem(1, shape.len());
    for i in (1..shape.len()).rev() {
        all[i - 1] = all[i] * shape[i];
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which elements of `a` and of `b` meet at each element of the result, found one index at a time.
    fn pairs(out: &[usize], a: &[usize], b: &[usize]) -> Vec<(usize, usize)> {
        let at = |i: usize, shape: &[usize]| {
            let (mut rest, mut at) = (i, 0);
            let strides = strides(out, shape);
            for axis in (0..out.len()).rev() {
                at += rest % out[axis] * strides[axis];
                rest /= out[axis];
            }
            at
        };
        (0..out.iter().product()).map(|i| (at(i, a), at(i, b))).collect()
    }

    #[test]
    fn runs_meet_the_same_elements_as_single_indices() {
        let shapes: [(&[usize], &[usize]); 8] = [
            (&[2, 3, 4], &[2, 3, 4]),
            (&[2, 3, 4], &[4]),
            (&[2, 3, 4], &[]),
            (&[2, 1, 4], &[3, 1]),
            (&[1], &[5, 1, 2]),
            (&[2, 3, 1], &[2, 1, 5]),
            (&[], &[]),
            (&[0, 3], &[1, 3]),
        ];
        for (a, b) in shapes {
            let out = broadcast(a, b).unwrap();
            let mut found = vec![(usize::MAX, usize::MAX); out.iter().product()];
            runs(&out, [a, b], |run| {
                for i in 0..run.len {
                    found[run.out + i] = (run.at[0] + i * run.step[0], run.at[1] + i * run.step[1]);
                }
            });
            assert_eq!(found, pairs(&out, a, b), "{a:?} {b:?}");
            // In pieces that do not end where runs do.
            let all = out.iter().product::<usize>();
            found.fill((usize::MAX, usize::MAX));
            for first in (0..all).step_by(5) {
                Runs::new(&out, [a, b]).within(first..all.min(first + 5), |run| {
                    for i in 0..run.len {
                        found[run.out + i] = (run.at[0] + i * run.step[0], run.at[1] + i * run.step[1]);
                    }
                });
            }
            assert_eq!(found, pairs(&out, a, b), "{a:?} {b:?} in pieces");
        }
    }

    #[test]
    fn axes_that_are_walked_through_make_one_run() {
        let mut lens = Vec::new();
        runs(&[2, 3, 4], [&[2, 3, 4], &[]], |run| lens.push(run.len));
        runs(&[2, 3, 4], [&[2, 3, 4], &[3, 4]], |run| lens.push(run.len));
        assert_eq!(lens, [24, 12, 12]);
    }
}
