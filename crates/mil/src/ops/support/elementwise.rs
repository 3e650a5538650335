//! Elementwise operations of one and of two operands.

use smallvec::smallvec;

use super::broadcast::{broadcast, map};
use crate::op::{OpError, Operands, Out, Results};
use crate::tensor::{Data, DataMut};
use crate::types::{Class, DType, StaticType};

/// The type of an elementwise result of the numbers `x` and `y` (parameters 0 and 1): broadcast, of their common element
/// type.
///
/// # Errors
/// If the shapes do not broadcast or the element types differ or are no numbers.
pub fn infer_binary(x: &dyn Operands) -> Result<Results, OpError> {
    let results = infer_comparison(x)?;
    if x.dtype(0).class() == Class::Bool {
        return Err(x.bad(0, "a tensor of numbers", x.dtype(0)));
    }
    Ok(results.into_iter().map(|ty| StaticType { dtype: x.dtype(0), shape: ty.shape }).collect())
}

/// The type of an elementwise comparison of `x` and `y` (parameters 0 and 1): truth values.
///
/// # Errors
/// If the shapes do not broadcast or the element types differ.
pub fn infer_comparison(x: &dyn Operands) -> Result<Results, OpError> {
    let ((a, a_shape), (b, b_shape)) = (x.ty_at(0, 0), x.ty_at(1, 0));
    if a != b || a == DType::String {
        return Err(OpError::mismatch("operands of one element type", format!("{a} and {b}")));
    }
    Ok(smallvec![StaticType { dtype: DType::Bool, shape: broadcast(a_shape, b_shape)? }])
}

/// The type of an elementwise result of the truth values `x` and `y` (parameters 0 and 1).
///
/// # Errors
/// If the shapes do not broadcast or the operands are no truth values.
pub fn infer_logical(x: &dyn Operands) -> Result<Results, OpError> {
    if x.dtype(0) != DType::Bool {
        return Err(x.bad(0, "a tensor of truth values", x.dtype(0)));
    }
    infer_comparison(x)
}

/// The type of an elementwise result of the numbers `x` (parameter 0).
///
/// # Errors
/// If `x` is neither floating nor of integers.
pub fn infer_unary(x: &dyn Operands) -> Result<Results, OpError> {
    let ty = x.ty(0);
    if !ty.dtype.is_float() && !ty.dtype.is_int() {
        return Err(x.bad(0, "a tensor of numbers", ty.dtype));
    }
    Ok(smallvec![ty])
}

/// The type of an elementwise result of `x` (parameter 0).
///
/// # Errors
/// If `x` is not floating.
pub fn infer_float_unary(x: &dyn Operands) -> Result<Results, OpError> {
    expect_float(x, 0)?;
    Ok(smallvec![x.ty(0)])
}

/// As [`infer_float_unary`]; every other parameter up to `params` is one floating number, if it was given.
///
/// # Errors
/// If an operand is not that.
pub fn infer_with_numbers(x: &dyn Operands, params: usize) -> Result<Results, OpError> {
    (1..params).filter(|&p| x.has(p)).try_for_each(|p| expect_number(x, p))?;
    infer_float_unary(x)
}

/// Checks that a parameter is floating.
///
/// # Errors
/// If it is not.
pub fn expect_float(x: &dyn Operands, param: usize) -> Result<(), OpError> {
    if x.dtype(param).is_float() { Ok(()) } else { Err(x.bad(param, "a floating tensor", x.dtype(param))) }
}

/// Checks that a parameter is one floating number.
///
/// # Errors
/// If it is not.
pub fn expect_number(x: &dyn Operands, param: usize) -> Result<(), OpError> {
    let (dtype, shape) = x.ty_at(param, 0);
    if dtype.is_float() && shape.iter().all(|&n| n == 1) {
        Ok(())
    } else {
        Err(x.bad(param, "one floating number", (dtype, shape)))
    }
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

/// Computes `float` or `int` of each element of `x`.
///
/// # Errors
/// If `x` is neither floating nor of integers.
pub fn eval_unary(
    x: &dyn Operands,
    out: &mut [Out<'_>],
    float: impl Fn(f32) -> f32,
    int: impl Fn(i32) -> i32,
) -> Result<(), OpError> {
    match (x.data(0)?, &mut out[0].data) {
        (Data::F32(a), DataMut::F32(r)) => r.iter_mut().zip(a).for_each(|(r, &v)| *r = float(v)),
        (Data::I32(a), DataMut::I32(r)) => r.iter_mut().zip(a).for_each(|(r, &v)| *r = int(v)),
        _ => return Err(x.bad(0, "a tensor of numbers", x.dtype(0))),
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
        (Data::F32(p), Data::F32(q), DataMut::F32(r)) => map((r, o.shape), (p, a), (q, b), float),
        (Data::I32(p), Data::I32(q), DataMut::I32(r)) => map((r, o.shape), (p, a), (q, b), int),
        _ => return Err(x.bad(1, "two operands of floating or of integer type", x.dtype(1))),
    }
    Ok(())
}

/// Compares each pair of elements of `x` and `y`; truth values compare as 0 and 1.
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
        (Data::F32(p), Data::F32(q), DataMut::Bool(r)) => map((r, o.shape), (p, a), (q, b), float),
        (Data::I32(p), Data::I32(q), DataMut::Bool(r)) => map((r, o.shape), (p, a), (q, b), int),
        (Data::Bool(p), Data::Bool(q), DataMut::Bool(r)) => {
            map((r, o.shape), (p, a), (q, b), |p, q| int(i32::from(p), i32::from(q)));
        }
        _ => return Err(x.bad(1, "two operands of one type", x.dtype(1))),
    }
    Ok(())
}

/// Computes `f` of each pair of truth values of `x` and `y`.
///
/// # Errors
/// If an operand is of another class.
pub fn eval_logical(x: &dyn Operands, out: &mut [Out<'_>], f: impl Fn(bool, bool) -> bool) -> Result<(), OpError> {
    let (p, q, o) = (x.bools(0)?, x.bools(1)?, &mut out[0]);
    let shape = o.shape;
    map((o.bools()?, shape), (p, x.shape(0)), (q, x.shape(1)), f);
    Ok(())
}

/// The larger of two numbers; not a number if either is not.
#[must_use]
pub fn max(a: f32, b: f32) -> f32 {
    if a > b || a.is_nan() { a } else { b }
}

/// The smaller of two numbers; not a number if either is not.
#[must_use]
pub fn min(a: f32, b: f32) -> f32 {
    if a < b || a.is_nan() { a } else { b }
}
