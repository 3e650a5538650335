//! Which elements `begin`, `end`, `stride` and the masks of `slice_by_index` and `slice_update` select: as numpy's basic
//! slicing, so ends outside an axis are clamped. An axis in `squeeze_mask` is indexed by its `begin`, which must be inside,
//! and leaves the result.

use smallvec::SmallVec;

use super::dims::strides;
use super::strided::Nest;
use crate::layout::Layout;
use crate::op::{OpError, Operands};
use crate::types::Shape;

/// The indices of the slicing parameters of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    /// Index of `begin`; `end`, `stride`, `begin_mask`, `end_mask` and `squeeze_mask` follow it.
    pub begin: usize,
}

/// What is selected along one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Index of the first element.
    pub first: usize,
    /// From one element to the next; negative walks backwards.
    pub step: isize,
    /// The number of elements.
    pub count: usize,
    /// Whether the axis leaves the result.
    pub squeezed: bool,
}

/// What is selected along each axis.
pub type Ranges = SmallVec<[Range; 6]>;

impl Params {
    /// What is selected of a tensor of shape `shape`.
    ///
    /// # Errors
    /// If a value is not known, has the wrong length or a squeezed axis is indexed outside.
    pub fn resolve(self, x: &dyn Operands, shape: &[usize]) -> Result<Ranges, OpError> {
        let masks = self.masks(x, shape.len())?;
        let stride = self.stride(x, shape.len())?;
        let begin = self.vector(x, self.begin, shape.len())?;
        let end = self.vector(x, self.begin + 1, shape.len())?;
        shape
            .iter()
            .enumerate()
            .map(|(i, &n)| {
                let begin = if masks.begin(i) { None } else { Some(begin[i]) };
                if masks.squeeze(i) {
                    let first = index(begin.unwrap_or(0), n).ok_or_else(|| {
                        x.bad(self.begin, format!("an index into {n} elements on axis {i}"), begin.unwrap_or(0))
                    })?;
                    return Ok(Range { first, step: 1, count: 1, squeezed: true });
                }
                let step = stride.map_or(1, |s| s[i]);
                Ok(range(n, begin, if masks.end(i) { None } else { Some(end[i]) }, step))
            })
            .collect()
    }

    /// The shape that is selected of a tensor of shape `shape`, without squeezed axes. Needs the values of `begin` and `end`
    /// only where they matter.
    ///
    /// # Errors
    /// As [`Self::resolve`].
    pub fn result(self, x: &dyn Operands, shape: &[usize]) -> Result<Shape, OpError> {
        let masks = self.masks(x, shape.len())?;
        for param in [self.begin, self.begin + 1] {
            if x.shape(param) != [shape.len()] || !x.dtype(param).is_int() {
                return Err(x.bad(param, format!("{} integers, one per axis", shape.len()), x.ty(param)));
            }
        }
        let stride = self.stride(x, shape.len())?;
        let whole = |i| masks.squeeze(i) || (masks.begin(i) && masks.end(i));
        if (0..shape.len()).all(whole) && [self.begin, self.begin + 1].iter().any(|&p| x.data_at(p, 0).is_none()) {
            let count = |i: usize| range(shape[i], None, None, stride.map_or(1, |s| s[i])).count;
            return Ok((0..shape.len()).filter(|&i| !masks.squeeze(i)).map(count).collect());
        }
        Ok(shape_of(&self.resolve(x, shape)?))
    }

    fn vector(self, x: &dyn Operands, param: usize, rank: usize) -> Result<&[i32], OpError> {
        let v = x.i32s(param)?;
        if v.len() == rank { Ok(v) } else { Err(x.bad(param, format!("{rank} integers, one per axis"), v)) }
    }

    fn stride(self, x: &dyn Operands, rank: usize) -> Result<Option<&[i32]>, OpError> {
        let param = self.begin + 2;
        if !x.has(param) {
            return Ok(None);
        }
        let v = self.vector(x, param, rank)?;
        if v.contains(&0) { Err(x.bad(param, "no stride of 0", v)) } else { Ok(Some(v)) }
    }

    fn masks<'a>(self, x: &'a dyn Operands, rank: usize) -> Result<Masks<'a>, OpError> {
        let mut masks = Masks([None; 3]);
        for (i, mask) in masks.0.iter_mut().enumerate() {
            let param = self.begin + 3 + i;
            if x.has(param) {
                let v = x.bools(param)?;
                if v.len() != rank {
                    return Err(x.bad(param, format!("{rank} truth values, one per axis"), v));
                }
                *mask = Some(v);
            }
        }
        Ok(masks)
    }
}

/// The shape of what is selected, without squeezed axes.
pub fn shape_of(ranges: &[Range]) -> Shape {
    ranges.iter().filter(|r| !r.squeezed).map(|r| r.count).collect()
}

struct Masks<'a>([Option<&'a [bool]>; 3]);

impl Masks<'_> {
    fn begin(&self, axis: usize) -> bool {
        self.0[0].is_some_and(|m| m[axis])
    }

    fn end(&self, axis: usize) -> bool {
        self.0[1].is_some_and(|m| m[axis])
    }

    fn squeeze(&self, axis: usize) -> bool {
        self.0[2].is_some_and(|m| m[axis])
    }
}

/// The element that `i` names among `n`; negative ones count from the end.
#[must_use]
pub fn index(i: i32, n: usize) -> Option<usize> {
    let at = if i < 0 { n.checked_sub(i.unsigned_abs() as usize)? } else { i as usize };
    (at < n).then_some(at)
}

/// What `begin:end:step` selects of `n` elements; `None` is left out. `step` is not 0.
fn range(n: usize, begin: Option<i32>, end: Option<i32>, step: i32) -> Range {
    let (n, step) = (n as i128, i128::from(step));
    let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
    let clamp = |v: i32| (if v < 0 { i128::from(v) + n } else { i128::from(v) }).clamp(low, high);
    let first = begin.map_or(if step > 0 { low } else { high }, clamp);
    let last = end.map_or(if step > 0 { high } else { low }, clamp);
    let count = ((last - first) * step.signum() + step.abs() - 1) / step.abs();
    let count = count.max(0) as usize;
    Range { first: if count == 0 { 0 } else { first as usize }, step: step as isize, count, squeezed: false }
}

/// The loops over what `ranges` select of a tensor of shape `shape`: from there to a dense tensor if `gather`, else the
/// other way.
#[must_use]
pub fn nest(shape: &[usize], ranges: &[Range], gather: bool) -> Nest {
    let strides = strides(shape);
    if ranges.iter().any(|r| r.count == 0) {
        let mut none = Nest::default();
        none.push(0, 0, 0);
        return none;
    }
    let first: usize = ranges.iter().zip(&strides).map(|(r, s)| r.first * s).sum();
    let mut dense: Shape = ranges.iter().map(|r| r.count).collect();
    dense = super::dims::strides(&dense);
    let mut nest = if gather { Nest::at(first, 0) } else { Nest::at(0, first) };
    for ((r, &s), &d) in ranges.iter().zip(&strides).zip(&dense) {
        // One turn never steps, so a product that wraps is not used.
        let s = r.step.wrapping_mul(s as isize) as usize;
        if gather { nest.push(r.count, s, d) } else { nest.push(r.count, d, s) }
    }
    nest
}

/// What `ranges` select of a tensor that lies as `layout` says; nothing for ranges that walk backwards.
#[must_use]
pub fn view(ranges: &[Range], layout: &Layout) -> Option<Layout> {
    let mut out = Layout { offset: layout.offset, shape: Shape::new(), strides: Shape::new() };
    for (r, &stride) in ranges.iter().zip(&layout.strides) {
        out.offset += r.first * stride;
        if !r.squeezed {
            let step = usize::try_from(r.step).ok()?;
            out.shape.push(r.count);
            // A step is taken only where there are two elements.
            out.strides.push(if r.count > 1 { step * stride } else { stride });
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picks(n: usize, begin: Option<i32>, end: Option<i32>, step: i32) -> Vec<isize> {
        let r = range(n, begin, end, step);
        (0..r.count as isize).map(|i| r.first as isize + i * r.step).collect()
    }

    #[test]
    fn ranges_are_those_of_numpy() {
        assert_eq!(picks(5, Some(1), Some(4), 1), [1, 2, 3]);
        assert_eq!(picks(5, Some(-2), None, 1), [3, 4]);
        assert_eq!(picks(5, Some(3), Some(100), 1), [3, 4]);
        assert_eq!(picks(5, Some(-100), Some(2), 1), [0, 1]);
        assert_eq!(picks(5, None, None, -1), [4, 3, 2, 1, 0]);
        assert_eq!(picks(5, Some(3), Some(0), -2), [3, 1]);
        assert_eq!(picks(5, Some(3), Some(-100), -2), [3, 1]);
        assert_eq!(picks(5, Some(3), Some(3), 1), [0isize; 0]);
        assert_eq!(picks(5, Some(4), Some(1), 1), [0isize; 0]);
        assert_eq!(picks(0, None, None, -1), [0isize; 0]);
        assert_eq!(picks(5, Some(0), Some(5), i32::MAX), [0]);
        assert_eq!(picks(5, Some(4), None, i32::MIN), [4]);
    }
}
