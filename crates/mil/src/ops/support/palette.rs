//! Palettes: numbers stored as indices into tables.

use super::blocks::{self, Blocks};
use crate::op::{OpError, Operands};
use crate::types::{DType, Shape};

/// How the elements of a tensor of indices turn into elements of the result. The table has shape (groups per axis …,
/// entries, vector length); an index gives `vector` consecutive elements along one axis.
#[derive(Debug)]
pub struct Palette {
    /// Which group an index belongs to.
    groups: Blocks,
    /// Entries of one group.
    entries: usize,
    /// Elements that one index gives.
    pub vector: usize,
    /// Elements between two of the result's elements that differ by 1 along the axis of vectors.
    pub inner: usize,
}

/// The shape of the result, where `indices` (or their mask) has shape `shape` and element type `dtype`, the table is
/// parameter `lut` and the axis of vectors parameter `axis`.
///
/// # Errors
/// If they do not fit each other.
pub fn expanded(x: &dyn Operands, shape: &[usize], dtype: DType, lut: usize, axis: usize) -> Result<Shape, OpError> {
    let (table, found) = x.ty_at(lut, 0);
    if table == DType::String || table == DType::Bool {
        return Err(x.bad(lut, "a table of numbers", table));
    }
    let (groups, &[entries, vector]) = found.split_last_chunk().unwrap_or((&[], &[0, 0]));
    if !is_index(dtype) || entries != 1 << dtype.bits() || vector == 0 {
        let expected = format!("shape (groups …, {}, vector length) for {dtype} indices", 1u64 << dtype.bits());
        return Err(x.bad(lut, expected, found));
    }
    blocks::check(x, lut, shape, groups)?;
    let mut result = Shape::from_slice(shape);
    if x.has(axis) {
        let extent = &mut result[x.axis(axis, shape.len())?];
        *extent = extent.checked_mul(vector).ok_or_else(|| x.bad(lut, "a result that can be counted", found))?;
    } else if vector > 1 {
        return Err(OpError::Missing { param: x.name_of(axis) });
    }
    Ok(result)
}

/// Elements within one index along an axis. (Overflows only where there are no elements.)
fn inner(shape: &[usize], axis: usize) -> usize {
    shape[axis + 1..].iter().fold(1, |n, &extent| n.wrapping_mul(extent))
}

/// Whether a type is one of indices.
fn is_index(dtype: DType) -> bool {
    matches!(dtype, DType::U1 | DType::U2 | DType::U3 | DType::U4 | DType::U6 | DType::U8)
}

impl Palette {
    /// The palette whose table is parameter `lut` and whose axis of vectors is parameter `axis`, for indices of shape
    /// `shape`. All is as [`expanded`] checked.
    ///
    /// # Errors
    /// If the axis is not known.
    pub fn new(x: &dyn Operands, shape: &[usize], lut: usize, axis: usize) -> Result<Self, OpError> {
        let table = x.shape(lut);
        let (groups, &[entries, vector]) = table.split_last_chunk().unwrap_or((&[], &[1, 1]));
        let inner = if x.has(axis) { inner(shape, x.axis(axis, shape.len())?) } else { 1 };
        Ok(Self { groups: Blocks::new(shape, groups), entries, vector, inner })
    }

    /// Where in the table the vector of an index begins that stands at `at` (row-major).
    ///
    /// # Errors
    /// If the index is beyond the table.
    pub fn look_up(&self, at: usize, index: i32) -> Result<usize, OpError> {
        self.entry(self.groups.of(at), index)
    }

    fn entry(&self, group: usize, index: i32) -> Result<usize, OpError> {
        match usize::try_from(index) {
            Ok(i) if i < self.entries => Ok((group * self.entries + i) * self.vector),
            _ => Err(OpError::mismatch(format!("indices below {}", self.entries), index.to_string())),
        }
    }

    /// Looks all indices up in `table`.
    ///
    /// # Errors
    /// If an index is beyond the table.
    pub fn expand<T: Copy>(&self, indices: &[i32], table: &[T], out: &mut [T]) -> Result<(), OpError> {
        let mut result = Ok(());
        self.groups.runs(|group, start, len| {
            for (at, &index) in (start..).zip(&indices[start..start + len]) {
                match self.entry(group, index) {
                    Ok(entry) if self.vector == 1 => out[at] = table[entry],
                    Ok(entry) => {
                        let first = at / self.inner * self.inner * self.vector + at % self.inner;
                        for (v, &value) in table[entry..entry + self.vector].iter().enumerate() {
                            out[first + v * self.inner] = value;
                        }
                    }
                    Err(e) => result = Err(e),
                }
            }
        });
        result
    }
}
