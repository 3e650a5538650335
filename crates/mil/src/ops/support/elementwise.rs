//! Elementwise operations of one and of two operands.

use smallvec::smallvec;

use super::broadcast::{broadcast, zip};
use crate::op::{OpError, Operands, Out, Results};
use crate::tensor::{Data, DataMut};
use crate::types::{DType, StaticType};

/// The type of an elementwise result of `x` and `y` (parameters 0 and 1): broadcast, of their common element type.
///
/// # Errors
/// If the shapes do not broadcast or the element types differ.
pub fn infer_binary(x: &dyn Operands) -> Result<Results, OpError> {
    let (a, b) = (x.ty(0), x.ty(1));
    if a.dtype != b.dtype {
        return Err(OpError::mismatch("operands of one element type", format!("{a} and {b}")));
    }
    Ok(smallvec![StaticType { dtype: a.dtype, shape: broadcast(&a.shape, &b.shape)? }])
}

/// As [`infer_binary`], with truth values as result.
///
/// # Errors
/// If the shapes do not broadcast or the element types differ.
pub fn infer_comparison(x: &dyn Operands) -> Result<Results, OpError> {
    let mut results = infer_binary(x)?;
    results[0].dtype = DType::Bool;
    Ok(results)
}

/// The type of an elementwise result of `x` (parameter 0).
///
/// # Errors
/// If `x` is not floating.
pub fn infer_float_unary(x: &dyn Operands) -> Result<Results, OpError> {
    let ty = x.ty(0);
    if !ty.dtype.is_float() {
        return Err(x.bad(0, "a floating tensor", ty.dtype));
    }
    Ok(smallvec![ty])
}

/// Computes `f` of each floating element of `x`.
///
/// # Errors
/// If `x` is not floating.
pub fn eval_float_unary(x: &dyn Operands, out: &mut [Out<'_>], f: impl Fn(f32) -> f32) -> Result<(), OpError> {
    for (o, &v) in out[0].f32s()?.iter_mut().zip(x.f32s(0)?) {
        *o = f(v);
    }
    Ok(())
}

/// Computes `float` or `int` of each pair of elements of `x` and `y`.
///
/// # Errors
/// If the operands are truth values or of two classes.
pub fn eval_binary(
    x: &dyn Operands,
    out: &mut [Out<'_>],
    float: impl Fn(f32, f32) -> f32,
    int: impl Fn(i32, i32) -> i32,
) -> Result<(), OpError> {
    let (a, b, o) = (x.shape(0), x.shape(1), &mut out[0]);
    match (x.data(0)?, x.data(1)?, &mut o.data) {
        (Data::F32(p), Data::F32(q), DataMut::F32(r)) => zip(o.shape, a, b, |i, j, k| r[i] = float(p[j], q[k])),
        (Data::I32(p), Data::I32(q), DataMut::I32(r)) => zip(o.shape, a, b, |i, j, k| r[i] = int(p[j], q[k])),
        _ => return Err(x.bad(1, "two operands of floating or of integer type", x.dtype(1))),
    }
    Ok(())
}

/// Compares each pair of elements of `x` and `y`.
///
/// # Errors
/// If the operands are of two classes.
pub fn eval_comparison(
    x: &dyn Operands,
    out: &mut [Out<'_>],
    float: impl Fn(f32, f32) -> bool,
    int: impl Fn(i32, i32) -> bool,
) -> Result<(), OpError> {
    let (a, b, o) = (x.shape(0), x.shape(1), &mut out[0]);
    match (x.data(0)?, x.data(1)?, &mut o.data) {
        (Data::F32(p), Data::F32(q), DataMut::Bool(r)) => zip(o.shape, a, b, |i, j, k| r[i] = float(p[j], q[k])),
        (Data::I32(p), Data::I32(q), DataMut::Bool(r)) => zip(o.shape, a, b, |i, j, k| r[i] = int(p[j], q[k])),
        (Data::Bool(p), Data::Bool(q), DataMut::Bool(r)) => {
            zip(o.shape, a, b, |i, j, k| r[i] = int(i32::from(p[j]), i32::from(q[k])));
        }
        _ => return Err(x.bad(1, "two operands of one type", x.dtype(1))),
    }
    Ok(())
}
