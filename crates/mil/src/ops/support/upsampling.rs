//! Images whose last two axes grow: by factors, or to an extent.

use smallvec::smallvec;

use super::resizing::expect_points;
use super::{dims, elementwise::expect_float};
use crate::op::{OpError, Operands, Results};
use crate::types::Class;

/// The type of parameter 0, an image, with its last two extents through `extent(axis, extent)`.
///
/// # Errors
/// If it is no image, or as `extent`.
pub fn infer(x: &dyn Operands, extent: impl Fn(usize, usize) -> Result<usize, OpError>) -> Result<Results, OpError> {
    expect_float(x, 0)?;
    let mut ty = x.ty(0);
    let rank = ty.shape.len();
    if rank < 3 {
        return Err(x.bad(0, "rank 3 or more", ty));
    }
    for axis in 0..2 {
        let n = &mut ty.shape[rank - 2 + axis];
        let points = extent(axis, *n)?;
        expect_points(x, *n, points)?;
        *n = points;
    }
    Ok(smallvec![ty])
}

/// The extent `n` times the factor in parameter `param`, 1 if it was left out, rounded down.
///
/// # Errors
/// If the factor is no positive number.
pub fn scaled(x: &dyn Operands, param: usize, n: usize) -> Result<usize, OpError> {
    if x.has(param) && x.dtype(param).class() == Class::Int {
        return dims::product(&[dims::extent(x, param, x.i32(param)?)?, n]);
    }
    // In single precision, as the extents that packages declare were computed.
    let points = (n as f32 * x.f32_or(param, 1.0)?).floor();
    if points >= 0.0 && points < u32::MAX as f32 {
        Ok(points as usize)
    } else {
        Err(x.bad(param, "a positive factor", x.f32_or(param, 1.0)?))
    }
}
