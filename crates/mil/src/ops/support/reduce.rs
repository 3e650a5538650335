//! Reductions: parameters `x`, `axes` (or `axis`) and `keep_dims`.

use smallvec::smallvec;

use super::lanes::{self, Axes, Lane, Lanes};
use crate::op::{OpError, Operands, Out, Param, Results};
use crate::tensor::{Data, DataMut};
use crate::types::{DType, Shape, StaticType};

const X: usize = 0;
const AXES: usize = 1;
const KEEP_DIMS: usize = 2;
const OUTPUT_DTYPE: usize = 3;

/// Parameters of a reduction along any axes.
pub const PARAMS: &[Param] = &[Param::required("x"), Param::optional("axes"), Param::optional("keep_dims")];

/// Parameters of a search along one axis.
pub const ARG_PARAMS: &[Param] =
    &[Param::required("x"), Param::optional("axis"), Param::optional("keep_dims"), Param::optional("output_dtype")];

fn reduced(shape: &[usize], axes: &Axes, keep: bool) -> Shape {
    let each = shape.iter().zip(axes);
    if keep {
        each.map(|(&n, &gone)| if gone { 1 } else { n }).collect()
    } else {
        each.filter(|&(_, &gone)| !gone).map(|(&n, _)| n).collect()
    }
}

fn expect_numbers(x: &dyn Operands) -> Result<(), OpError> {
    let dtype = x.dtype(X);
    if dtype.is_float() || dtype.is_int() { Ok(()) } else { Err(x.bad(X, "a tensor of numbers", dtype)) }
}

/// The type of a reduction along `axes`: `x`'s element type.
///
/// # Errors
/// If `x` is not of numbers or an axis is wrong.
pub fn infer(x: &dyn Operands) -> Result<Results, OpError> {
    expect_numbers(x)?;
    let (dtype, shape) = x.ty_at(X, 0);
    let axes = lanes::axes(x, AXES, shape.len())?;
    Ok(smallvec![StaticType { dtype, shape: reduced(shape, &axes, x.bool_or(KEEP_DIMS, false)?) }])
}

/// Reduces every lane of `x` along `axes`.
///
/// # Errors
/// If `x` is not of numbers or an axis is wrong.
pub fn eval(
    x: &dyn Operands,
    out: &mut [Out<'_>],
    float: impl Fn(Lane<'_>, &[f32]) -> f32,
    int: impl Fn(Lane<'_>, &[i32]) -> i32,
) -> Result<(), OpError> {
    let shape = x.shape(X);
    let lanes = Lanes::new(shape, &lanes::axes(x, AXES, shape.len())?);
    match (x.data(X)?, &mut out[0].data) {
        (Data::F32(data), DataMut::F32(r)) => lanes.for_each(|i, lane| r[i] = float(lane, data)),
        (Data::I32(data), DataMut::I32(r)) => lanes.for_each(|i, lane| r[i] = int(lane, data)),
        _ => return Err(x.bad(X, "a tensor of numbers", x.dtype(X))),
    }
    Ok(())
}

/// The sum of `f` of integers, as the wide number that a formula goes on with.
#[must_use]
pub fn wide_sum(lane: Lane<'_>, data: &[i32], f: impl Fn(f64) -> f64) -> f64 {
    lane.fold(data, 0.0, |sum, v| sum + f(f64::from(v)))
}

/// The type of a search along one axis: indices.
///
/// # Errors
/// If `x` is not of numbers, its axis is wrong or has no elements, or the indices do not fit `output_dtype`.
pub fn infer_arg(x: &dyn Operands) -> Result<Results, OpError> {
    expect_numbers(x)?;
    let shape = x.shape(X);
    let axes = lanes::axis_or_last(x, AXES, shape.len())?;
    let name = x.text_or(OUTPUT_DTYPE, "int32")?;
    let (dtype, most) = if name.eq_ignore_ascii_case("int32") {
        (DType::I32, 1 << 31)
    } else if name.eq_ignore_ascii_case("uint16") {
        (DType::U16, 1 << 16)
    } else {
        return Err(x.bad(OUTPUT_DTYPE, "int32 or uint16", name));
    };
    if shape.iter().zip(&axes).any(|(&n, &along)| along && !(1..=most).contains(&n)) {
        return Err(x.bad(X, format!("1 to {most} elements along the axis"), shape));
    }
    Ok(smallvec![StaticType { dtype, shape: reduced(shape, &axes, x.bool_or(KEEP_DIMS, false)?) }])
}

/// Finds in every lane of `x` the first element that no later one is `better` than. What is not a number is better than
/// all numbers.
///
/// # Errors
/// If `x` is not of numbers or its axis is wrong.
pub fn eval_arg(
    x: &dyn Operands,
    out: &mut [Out<'_>],
    float: impl Fn(f32, f32) -> bool,
    int: impl Fn(i32, i32) -> bool,
) -> Result<(), OpError> {
    let shape = x.shape(X);
    let lanes = Lanes::new(shape, &lanes::axis_or_last(x, AXES, shape.len())?);
    let r = out[0].i32s()?;
    match x.data(X)? {
        Data::F32(data) => {
            lanes.for_each(|i, lane| r[i] = find(lane, data, |a, b| float(a, b) || a.is_nan() && !b.is_nan()));
        }
        Data::I32(data) => lanes.for_each(|i, lane| r[i] = find(lane, data, &int)),
        Data::Bool(_) => return Err(x.bad(X, "a tensor of numbers", x.dtype(X))),
    }
    Ok(())
}

fn find<T: Copy>(lane: Lane<'_>, data: &[T], better: impl Fn(T, T) -> bool) -> i32 {
    let mut best: Option<(usize, T)> = None;
    lane.for_each(|position, at| {
        if best.is_none_or(|(_, v)| better(data[at], v)) {
            best = Some((position, data[at]));
        }
    });
    best.map_or(0, |(position, _)| position as i32)
}
