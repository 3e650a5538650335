//! Extents, axes and sizes out of parameters, checked.

use smallvec::SmallVec;

use crate::op::{OpError, Operands, Out, normalize_axis};
use crate::tensor::{Data, DataMut};
use crate::types::{Class, Shape, StaticType};

/// A list of axes.
pub type Axes = SmallVec<[usize; 6]>;

/// The type of a tensor argument of numbers or truth values.
///
/// # Errors
/// If the argument is text.
pub fn numbers(x: &dyn Operands, param: usize) -> Result<StaticType, OpError> {
    numbers_at(x, param, 0)
}

/// As [`numbers`], of argument `index`.
///
/// # Errors
/// If the argument is text.
pub fn numbers_at(x: &dyn Operands, param: usize, index: usize) -> Result<StaticType, OpError> {
    let (dtype, shape) = x.ty_at(param, index);
    if dtype.class() == Class::String {
        return Err(x.bad(param, "a tensor of numbers or truth values", dtype));
    }
    Ok(StaticType::new(dtype, shape))
}

/// An axis of a tensor of rank `rank`, or the one that `default` names if the parameter was left out.
///
/// # Errors
/// If it is not known or out of range.
pub fn axis_or(x: &dyn Operands, param: usize, rank: usize, default: i32) -> Result<usize, OpError> {
    let axis = x.i32_or(param, default)?;
    normalize_axis(axis, rank).ok_or_else(|| x.bad(param, format!("an axis of a tensor of rank {rank}"), axis))
}

/// Distinct axes of a tensor of rank `rank`, in the order given.
///
/// # Errors
/// If they are not known, out of range or repeated.
pub fn axes(x: &dyn Operands, param: usize, rank: usize) -> Result<Axes, OpError> {
    let mut found = Axes::new();
    for &axis in x.i32s(param)? {
        match normalize_axis(axis, rank) {
            Some(a) if !found.contains(&a) => found.push(a),
            _ => return Err(x.bad(param, format!("distinct axes of a tensor of rank {rank}"), axis)),
        }
    }
    Ok(found)
}

/// An extent that a parameter holds.
///
/// # Errors
/// If it is negative.
pub fn extent(x: &dyn Operands, param: usize, value: i32) -> Result<usize, OpError> {
    usize::try_from(value).map_err(|_| x.bad(param, "no negative extent", value))
}

/// Which of `names` a text parameter holds, in any case of letters; the first if it was left out.
///
/// # Errors
/// If it is no text or another one.
pub fn choice(x: &dyn Operands, param: usize, names: &[&str]) -> Result<usize, OpError> {
    let text = x.text_or(param, names[0])?;
    names
        .iter()
        .position(|name| name.eq_ignore_ascii_case(text))
        .ok_or_else(|| x.bad(param, format!("one of {}", names.join(", ")), text))
}

/// The product of extents.
///
/// # Errors
/// If it overflows.
pub fn product(extents: &[usize]) -> Result<usize, OpError> {
    extents.iter().try_fold(1usize, |a, &b| a.checked_mul(b)).ok_or_else(|| too_large(extents))
}

/// The sum of extents.
///
/// # Errors
/// If it overflows.
pub fn sum(extents: &[usize]) -> Result<usize, OpError> {
    extents.iter().try_fold(0usize, |a, &b| a.checked_add(b)).ok_or_else(|| too_large(extents))
}

fn too_large(extents: &[usize]) -> OpError {
    OpError::mismatch("a size that can be addressed", format!("{extents:?}"))
}

/// The extents before, at and after `axis`, each as one number.
///
/// # Errors
/// If a product overflows.
pub fn around(shape: &[usize], axis: usize) -> Result<(usize, usize, usize), OpError> {
    Ok((product(&shape[..axis])?, shape[axis], product(&shape[axis + 1..])?))
}

/// Row-major strides in elements. Those of a tensor without elements mean nothing.
#[must_use]
pub fn strides(shape: &[usize]) -> Shape {
    let mut all = Shape::from_elem(1, shape.len());
    for i in (1..shape.len()).rev() {
        all[i - 1] = all[i].wrapping_mul(shape[i]);
    }
    all
}

/// Copies argument 0 of `param` to the result as it lies.
///
/// # Errors
/// If they differ in class or number of elements.
pub fn copy(x: &dyn Operands, param: usize, out: &mut Out<'_>) -> Result<(), OpError> {
    match (x.data(param)?, &mut out.data) {
        (Data::F32(a), DataMut::F32(r)) if a.len() == r.len() => r.copy_from_slice(a),
        (Data::I32(a), DataMut::I32(r)) if a.len() == r.len() => r.copy_from_slice(a),
        (Data::Bool(a), DataMut::Bool(r)) if a.len() == r.len() => r.copy_from_slice(a),
        _ => return Err(class_mismatch()),
    }
    Ok(())
}

/// Operands that differ in class from the result.
#[must_use]
pub fn class_mismatch() -> OpError {
    OpError::mismatch("operands and results of one element type", "another")
}
