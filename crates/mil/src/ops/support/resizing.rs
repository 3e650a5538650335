//! Where the points of a resized axis lie on the original one, and what stands there. The formulas are those that coremltools
//! documents for `resize_bilinear`.

use smallvec::SmallVec;

use super::dims;
use crate::op::{OpError, Operands, Out};
use crate::tensor::{Data, DataMut};

/// How the points of a resized axis are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grid {
    /// The first and last points meet the first and last elements.
    StrictAlignCorners,
    /// The same, but a single point lies in the middle.
    AlignCorners,
    /// The first points meet.
    Default,
    /// As regions of interest are aligned: half a spacing from both ends.
    OffsetCorners,
    /// Elements are areas: half an element from both ends.
    UnalignCorners,
}

impl Grid {
    /// What parameter `param` says; the default if it was left out.
    ///
    /// # Errors
    /// If it names no way.
    pub fn new(x: &dyn Operands, param: usize) -> Result<Self, OpError> {
        Ok(match x.text_or(param, "DEFAULT")? {
            "STRICT_ALIGN_CORNERS" => Grid::StrictAlignCorners,
            "ALIGN_CORNERS" => Grid::AlignCorners,
            "DEFAULT" => Grid::Default,
            "OFFSET_CORNERS" => Grid::OffsetCorners,
            "UNALIGN_CORNERS" => Grid::UnalignCorners,
            other => return Err(x.bad(param, "DEFAULT or a way to align corners", other)),
        })
    }

    /// Where point `i` of `points` lies on an axis of `extent`, from 0 to `extent - 1`.
    #[must_use]
    pub fn point(self, i: usize, points: usize, extent: f64) -> f64 {
        let (i, n) = (i as f64, points as f64);
        let at = match self {
            Grid::AlignCorners if points == 1 => (extent - 1.0) / 2.0,
            Grid::StrictAlignCorners | Grid::AlignCorners => i * (extent - 1.0) / (n - 1.0).max(1.0),
            Grid::Default => i * extent / n,
            Grid::OffsetCorners => (i + 0.5) * (extent - 1.0).max(1.0) / n,
            Grid::UnalignCorners => (i + 0.5) * extent / n - 0.5,
        };
        at.min(extent - 1.0).max(0.0)
    }

    /// The element that is nearest to point `i`: the one before it for the default, as in TensorFlow and PyTorch.
    fn nearest(self, i: usize, points: usize, extent: usize) -> usize {
        let at = self.point(i, points, extent as f64);
        let whole = if self == Grid::Default { at } else { (at + 0.5).floor() };
        (whole as usize).min(extent - 1)
    }

    /// The elements on both sides of point `i`, and how near it is to the second.
    fn between(self, i: usize, points: usize, extent: usize) -> (usize, usize, f32) {
        let at = self.point(i, points, extent as f64);
        let low = (at as usize).min(extent - 1);
        (low, (low + 1).min(extent - 1), (at - low as f64) as f32)
    }
}

/// Resizes parameter 0 to the shape of the result: its last `axes` axes may differ.
///
/// # Errors
/// If the operands differ in class, or elements that are no floats would have to be mixed.
pub fn resize(x: &dyn Operands, out: &mut Out<'_>, axes: usize, grid: Grid, nearest: bool) -> Result<(), OpError> {
    let from = x.shape(0);
    if out.shape.contains(&0) {
        return Ok(());
    }
    let split = from.len() - axes;
    let plan = Plan { from: &from[split..], to: &out.shape[split..], grid };
    match (x.data(0)?, &mut out.data) {
        (Data::F32(a), DataMut::F32(r)) if nearest => plan.pick(a, r),
        (Data::I32(a), DataMut::I32(r)) if nearest => plan.pick(a, r),
        (Data::Bool(a), DataMut::Bool(r)) if nearest => plan.pick(a, r),
        (Data::F32(a), DataMut::F32(r)) => plan.mix(a, r),
        _ => return Err(dims::class_mismatch()),
    }
    Ok(())
}

/// Checks that an axis can be resized.
///
/// # Errors
/// If points are asked for where there is no element.
pub fn expect_points(x: &dyn Operands, from: usize, to: usize) -> Result<(), OpError> {
    if from == 0 && to > 0 { Err(x.bad(0, "no empty axis to resize", x.shape(0))) } else { Ok(()) }
}

struct Plan<'a> {
    from: &'a [usize],
    to: &'a [usize],
    grid: Grid,
}

impl Plan<'_> {
    /// The nearest element for each point.
    fn pick<T: Copy>(&self, a: &[T], r: &mut [T]) {
        let (image, points) = (self.from.iter().product(), self.to.iter().product());
        for (a, r) in a.chunks_exact(image).zip(r.chunks_exact_mut(points)) {
            for (i, r) in r.iter_mut().enumerate() {
                let (mut rest, mut at, mut stride) = (i, 0, 1);
                for (&n, &p) in self.from.iter().zip(self.to).rev() {
                    at += self.grid.nearest(rest % p, p, n) * stride;
                    rest /= p;
                    stride *= n;
                }
                *r = a[at];
            }
        }
    }

    /// The elements around each point, mixed by nearness.
    fn mix(&self, a: &[f32], r: &mut [f32]) {
        let (image, points) = (self.from.iter().product(), self.to.iter().product());
        let mut sides: SmallVec<[(usize, usize, f32); 5]> = SmallVec::from_elem((0, 0, 0.0), self.from.len());
        for (a, r) in a.chunks_exact(image).zip(r.chunks_exact_mut(points)) {
            for (i, r) in r.iter_mut().enumerate() {
                let (mut rest, mut stride) = (i, 1);
                for (side, (&n, &p)) in sides.iter_mut().zip(self.from.iter().zip(self.to)).rev() {
                    let (low, high, near) = self.grid.between(rest % p, p, n);
                    *side = (low * stride, high * stride, near);
                    rest /= p;
                    stride *= n;
                }
                *r = mixed(a, &sides, 0);
            }
        }
    }
}

fn mixed(a: &[f32], sides: &[(usize, usize, f32)], at: usize) -> f32 {
    let Some((&(low, high, near), rest)) = sides.split_first() else { return a[at] };
    let first = mixed(a, rest, at + low);
    if near == 0.0 { first } else { first + (mixed(a, rest, at + high) - first) * near }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_are_those_of_the_documentation() {
        let points = |grid: Grid, n: usize| -> Vec<f64> {
            (0..n).map(|i| (grid.point(i, n, 2.0) * 100.0).round() / 100.0).collect()
        };
        assert_eq!(points(Grid::UnalignCorners, 5), [0.0, 0.1, 0.5, 0.9, 1.0]);
        assert_eq!(points(Grid::StrictAlignCorners, 5), [0.0, 0.25, 0.5, 0.75, 1.0]);
        assert_eq!(points(Grid::Default, 5), [0.0, 0.4, 0.8, 1.0, 1.0]);
        assert_eq!(points(Grid::OffsetCorners, 5), [0.1, 0.3, 0.5, 0.7, 0.9]);
        assert_eq!(points(Grid::UnalignCorners, 6), [0.0, 0.0, 0.33, 0.67, 1.0, 1.0]);
        assert_eq!(points(Grid::AlignCorners, 6), [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]);
        assert_eq!(points(Grid::Default, 6), [0.0, 0.33, 0.67, 1.0, 1.0, 1.0]);
        assert_eq!(points(Grid::OffsetCorners, 6), [0.08, 0.25, 0.42, 0.58, 0.75, 0.92]);
        assert_eq!(points(Grid::AlignCorners, 1), [0.5]);
        assert_eq!(points(Grid::StrictAlignCorners, 1), [0.0]);
    }
}
