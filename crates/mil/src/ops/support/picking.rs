//! Places that indices name: what the `gather` and `scatter` families share.

use smallvec::SmallVec;

use super::slicing::index;
use crate::op::{OpError, Operands};
use crate::types::Shape;

/// How an operation reads its indices. A negative index counts from the end, except under `validate_indices`, which refuses
/// it. An index outside is always an error; Core ML leaves it undefined without `validate_indices`.
#[derive(Clone, Copy)]
pub struct Indices<'a> {
    x: &'a dyn Operands,
    param: usize,
    strict: bool,
    /// The indices.
    pub values: &'a [i32],
}

impl<'a> Indices<'a> {
    /// The indices of parameter `param`, under what parameter `validate` says.
    ///
    /// # Errors
    /// If they are not known.
    pub fn new(x: &'a dyn Operands, param: usize, validate: usize) -> Result<Self, OpError> {
        Ok(Self { x, param, strict: x.bool_or(validate, false)?, values: x.i32s(param)? })
    }

    /// The place among `n` that index `i` names.
    ///
    /// # Errors
    /// If there is none.
    pub fn place(&self, i: i32, n: usize) -> Result<usize, OpError> {
        index(i, n)
            .filter(|_| !self.strict || i >= 0)
            .ok_or_else(|| self.x.bad(self.param, format!("indices into {n} slices"), i))
    }
}

/// Checks that a parameter holds integers.
///
/// # Errors
/// If it does not.
pub fn expect_ints(x: &dyn Operands, param: usize) -> Result<(), OpError> {
    if x.dtype(param).is_int() { Ok(()) } else { Err(x.bad(param, "integers", x.dtype(param))) }
}

/// What the rows of `indices` (the last axis) name in `shape`, from axis `batch` on: slices of the axes behind.
#[derive(Debug)]
pub struct Rows {
    /// The number of leading axes that go together with those of `indices`.
    batch: usize,
    /// Axes that a row names.
    pub depth: usize,
}

impl Rows {
    /// For `indices` into a tensor of shape `shape`.
    ///
    /// # Errors
    /// If they do not fit each other.
    pub fn new(shape: &[usize], indices: &[usize], batch: i32) -> Result<Self, OpError> {
        let fits = |batch: usize| {
            let (&depth, rows) = indices.split_last()?;
            let agree = batch <= rows.len() && rows[..batch] == *shape.get(..batch)?;
            (agree && depth <= shape.len() - batch).then_some(Self { batch, depth })
        };
        usize::try_from(batch).ok().and_then(fits).ok_or_else(|| {
            OpError::mismatch(
                format!("indices whose last axis names axes of {shape:?} behind {batch} common ones"),
                format!("{indices:?}"),
            )
        })
    }

    /// The shape of what is named: the rows' own axes, then those of a slice.
    #[must_use]
    pub fn result(&self, shape: &[usize], indices: &[usize]) -> Shape {
        indices[..indices.len() - 1].iter().chain(&shape[self.batch + self.depth..]).copied().collect()
    }

    /// Calls `f` with the index of the first element of the slice that each row names. Each has the elements of the axes
    /// behind those named.
    ///
    /// # Errors
    /// If an index is outside.
    pub fn each(
        &self,
        shape: &[usize],
        rows: &[usize],
        indices: &Indices<'_>,
        mut f: impl FnMut(usize),
    ) -> Result<(), OpError> {
        let named = &shape[self.batch..self.batch + self.depth];
        let slice: usize = shape[self.batch + self.depth..].iter().product();
        let count: usize = rows.iter().product();
        let batches: usize = shape[..self.batch].iter().product();
        let per_batch = count / batches.max(1);
        let block: usize = named.iter().product::<usize>() * slice;
        for r in 0..count {
            let row = &indices.values[r * self.depth..(r + 1) * self.depth];
            let places: SmallVec<[usize; 6]> =
                row.iter().zip(named).map(|(&i, &n)| indices.place(i, n)).collect::<Result<_, _>>()?;
            let within = places.iter().zip(named).fold(0, |at, (&i, &n)| at * n + i);
            f(r / per_batch * block + within * slice);
        }
        Ok(())
    }
}
