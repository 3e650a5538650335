//! Tensors of one value: `fill`, `fill_like` and the padding of `pad`.

use crate::op::{OpError, Operands, Out};
use crate::tensor::DataMut;
use crate::types::{Class, DType};

/// The element type of a result filled with `value`; `fp32` if the parameter was left out.
///
/// # Errors
/// If the value is text.
pub fn dtype(x: &dyn Operands, value: usize) -> Result<DType, OpError> {
    let dtype = if x.has(value) { x.dtype(value) } else { DType::F32 };
    if dtype.class() == Class::String { Err(x.bad(value, "a number or truth value", dtype)) } else { Ok(dtype) }
}

/// Sets every element to `value`, or to zero if the parameter was left out.
///
/// # Errors
/// If the value is not one element of the result's class.
pub fn fill(x: &dyn Operands, value: usize, out: &mut Out<'_>) -> Result<(), OpError> {
    match &mut out.data {
        DataMut::F32(r) => r.fill(x.f32_or(value, 0.0)?),
        DataMut::I32(r) => r.fill(x.i32_or(value, 0)?),
        DataMut::Bool(r) => r.fill(x.bool_or(value, false)?),
    }
    Ok(())
}
