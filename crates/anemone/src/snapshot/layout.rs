//! How the cache lies in state tensors, whatever runtime holds them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The state tensors that hold a cache, and whose they are. A snapshot fits a runner whose layout is the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheLayout {
    /// Digest of the package.
    pub package: [u8; 32],
    /// How many tokens a state holds.
    pub context: usize,
    /// The tensors, in order of names.
    pub tensors: Vec<CacheTensor>,
}

/// One state tensor. Along its growing axis there is a column for each position of the context.
///
/// As bytes its elements are little-endian. The axes before the growing one, taken together, count *rows*; the first
/// columns of a row lie side by side, so that they can be read and written as one run of bytes, whatever strides the
/// runtime keeps them with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheTensor {
    /// Its name in the package.
    pub name: String,
    /// Bytes of an element: 2 for half floats.
    pub element_bytes: usize,
    /// Its extents.
    pub shape: Vec<usize>,
    /// The growing axis.
    pub axis: usize,
}

impl CacheTensor {
    /// A tensor of half floats. Its growing axis is the one as long as the context; of several, that before the last, as
    /// in `(…, context, head dim)`, or else the last of them. None if there is none.
    pub fn of_halves(name: &str, shape: &[usize], context: usize) -> Option<Self> {
        let grows = |axis: &usize| shape[*axis] == context;
        let usual = shape.len().checked_sub(2).filter(grows);
        let axis = usual.or_else(|| (0..shape.len()).rev().find(grows))?;
        Some(Self { name: name.to_owned(), element_bytes: 2, shape: shape.to_vec(), axis })
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.shape[..self.axis].iter().product()
    }

    /// Bytes of one column of a row.
    pub fn column_bytes(&self) -> usize {
        self.shape[self.axis + 1..].iter().product::<usize>() * self.element_bytes
    }
}

impl fmt::Display for CacheTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} growing along axis {}", self.name, self.shape, self.axis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_growing_axis_is_found_by_its_length() {
        let axis = |shape: &[usize]| CacheTensor::of_halves("kv", shape, 64).map(|tensor| tensor.axis);
        assert_eq!(axis(&[60, 3, 64, 32]), Some(2));
        assert_eq!(axis(&[60, 3, 64, 64]), Some(2));
        assert_eq!(axis(&[64, 60, 3, 32]), Some(0));
        assert_eq!(axis(&[60, 3, 32, 64]), Some(3));
        assert_eq!(axis(&[64]), Some(0));
        assert_eq!(axis(&[60, 3]), None);
        assert_eq!(axis(&[]), None);
    }

    #[test]
    fn rows_and_columns() {
        let tensor = CacheTensor::of_halves("kv", &[6, 3, 64, 32], 64).unwrap();
        assert_eq!((tensor.rows(), tensor.column_bytes()), (18, 64));
        let first = CacheTensor::of_halves("kv", &[64, 5], 64).unwrap();
        assert_eq!((first.rows(), first.column_bytes()), (1, 10));
    }
}
