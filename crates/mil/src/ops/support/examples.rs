//! Short ways to write the tensors of test cases.

use crate::case::Case;
use crate::tensor::Tensor;
use crate::types::DType;

/// A vector of `fp32`.
#[must_use]
pub fn floats(values: &[f32]) -> Tensor {
    Tensor::floats(DType::F32, &[values.len()], values)
}

/// A tensor of `fp32`.
///
/// # Panics
/// If the lengths disagree.
#[must_use]
pub fn shaped(shape: &[usize], values: &[f32]) -> Tensor {
    Tensor::floats(DType::F32, shape, values)
}

/// A vector of `int32`.
#[must_use]
pub fn ints(values: &[i32]) -> Tensor {
    Tensor::ints(DType::I32, &[values.len()], values)
}

/// A vector of truth values.
#[must_use]
pub fn bools(values: &[bool]) -> Tensor {
    Tensor::bools(&[values.len()], values)
}

/// A case of an operation of `x`.
#[must_use]
pub fn unary(name: &'static str, x: Tensor, expect: Tensor) -> Case {
    Case::new(name).input("x", x).expect(expect)
}

/// A case of an operation of `x` and `y`.
#[must_use]
pub fn binary(name: &'static str, x: Tensor, y: Tensor, expect: Tensor) -> Case {
    Case::new(name).input("x", x).input("y", y).expect(expect)
}
