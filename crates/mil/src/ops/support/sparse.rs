//! Sparse tensors: a mask, and the elements that it keeps in row-major order.

use super::dims;
use crate::op::{OpError, Operands};
use crate::types::DType;

/// Checks that parameter `mask` is a mask, and `values` a vector of as many numbers as it keeps.
///
/// # Errors
/// If they are not.
pub fn check(x: &dyn Operands, mask: usize, values: usize) -> Result<(), OpError> {
    if x.dtype(mask) != DType::U1 || x.shape(mask).is_empty() {
        return Err(x.bad(mask, "a mask: uint1, of rank 1 or more", x.ty(mask)));
    }
    match (vector(x, values)?, x.i32s(mask)) {
        (n, Ok(mask)) => expect_count(x, values, n, ones(mask)),
        (_, Err(OpError::NeedsValue { .. })) => Ok(()),
        (_, Err(e)) => Err(e),
    }
}

/// The length of a parameter that is a vector of numbers.
///
/// # Errors
/// If it is none.
pub fn vector(x: &dyn Operands, param: usize) -> Result<usize, OpError> {
    let ty = dims::numbers(x, param)?;
    match ty.shape[..] {
        [n] if ty.dtype != DType::Bool => Ok(n),
        _ => Err(x.bad(param, "a vector of numbers", ty)),
    }
}

/// Checks that a vector is as long as a mask keeps elements.
///
/// # Errors
/// If it is not.
pub fn expect_count(x: &dyn Operands, values: usize, found: usize, kept: usize) -> Result<(), OpError> {
    if found == kept { Ok(()) } else { Err(x.bad(values, format!("{kept} elements, as the mask keeps"), found)) }
}

/// How many elements a mask keeps.
#[must_use]
pub fn ones(mask: &[i32]) -> usize {
    mask.iter().filter(|&&keep| keep != 0).count()
}

/// Puts `values` where the mask `keeps` an element, and zeros elsewhere.
///
/// # Errors
/// If the mask keeps more or fewer elements than there are values.
pub fn scatter<T: Copy + Default>(keeps: impl Fn(usize) -> bool, values: &[T], out: &mut [T]) -> Result<(), OpError> {
    let mut next = 0;
    for (i, r) in out.iter_mut().enumerate() {
        *r = T::default();
        if keeps(i) {
            *r = values.get(next).copied().unwrap_or_default();
            next += 1;
        }
    }
    if next == values.len() {
        return Ok(());
    }
    Err(OpError::mismatch(format!("{next} elements, as the mask keeps"), values.len().to_string()))
}
