//! `max_pool`: the largest element of each window. The padding takes no part.

use crate::case::Case;
use crate::lower::{Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::pooling;
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct MaxPool;

/// The larger of two numbers; not a number if the second is not.
fn larger(s: f32, v: f32) -> f32 {
    if v > s || v.is_nan() { v } else { s }
}

impl Op for MaxPool {
    fn name(&self) -> &'static str {
        "max_pool"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        &pooling::PARAMS
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        pooling::infer(x)
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        pooling::eval(x, &mut out[0], f32::NEG_INFINITY, larger, |max, _, _| max)
    }

    fn lower(&self, x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        pooling::lower(x, f32::NEG_INFINITY, larger, |max, _, _| max)
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            Case::new("one axis, stride 1 by default")
                .input("x", Tensor::floats(DType::F16, &[1, 2, 4], &[3.0, -1.0, 1.0, -3.0, 1.0, -2.0, -3.0, 2.0]))
                .constant("kernel_sizes", [2])
                .constant("pad_type", "valid")
                .expect(Tensor::floats(DType::F16, &[1, 2, 3], &[3.0, 1.0, 1.0, 1.0, -2.0, 2.0])),
            Case::new("the padding takes no part")
                .input(
                    "x",
                    Tensor::floats(
                        DType::F16,
                        &[1, 1, 3, 4],
                        &[-2.0, -2.0, -5.0, -3.0, -4.0, -1.0, -5.0, -5.0, -4.0, -5.0, -5.0, -2.0],
                    ),
                )
                .constant("kernel_sizes", [2, 2])
                .constant("strides", [2, 2])
                .constant("pad_type", "custom")
                .constant("pad", [1, 0, 1, 1])
                .expect(Tensor::floats(DType::F16, &[1, 1, 2, 3], &[-2.0, -2.0, -3.0, -4.0, -1.0, -2.0])),
            Case::new("same")
                .input(
                    "x",
                    Tensor::floats(
                        DType::F16,
                        &[1, 1, 5, 4],
                        &[
                            -1.0, 3.0, -2.0, -3.0, -3.0, -2.0, 1.0, -3.0, 3.0, -2.0, -2.0, 1.0, 3.0, -1.0, 3.0, -2.0,
                            -3.0, 3.0, 2.0, 2.0,
                        ],
                    ),
                )
                .constant("kernel_sizes", [3, 2])
                .constant("strides", [2, 2])
                .constant("pad_type", "same")
                .expect(Tensor::floats(DType::F16, &[1, 1, 3, 2], &[3.0, 1.0, 3.0, 3.0, 3.0, 3.0])),
            Case::new("extents rounded up, but no window on padding alone")
                .input("x", Tensor::floats(DType::F16, &[1, 1, 6], &[3.0, 0.0, -3.0, 1.0, 1.0, -1.0]))
                .constant("kernel_sizes", [2])
                .constant("strides", [3])
                .constant("pad_type", "custom")
                .constant("pad", [1, 1])
                .constant("ceil_mode", true)
                .expect(Tensor::floats(DType::F16, &[1, 1, 3], &[3.0, 1.0, -1.0])),
            Case::new("extents rounded up")
                .input("x", Tensor::floats(DType::F16, &[1, 1, 6], &[1.0, -2.0, 1.0, 3.0, -4.0, 0.0]))
                .constant("kernel_sizes", [3])
                .constant("strides", [2])
                .constant("pad_type", "valid")
                .constant("ceil_mode", true)
                .expect(Tensor::floats(DType::F16, &[1, 1, 3], &[1.0, 3.0, 0.0])),
            Case::new("three axes")
                .input(
                    "x",
                    Tensor::floats(
                        DType::F16,
                        &[1, 1, 2, 3, 2],
                        &[1.0, -4.0, 1.0, 4.0, 3.0, 2.0, 3.0, -1.0, -2.0, -4.0, 2.0, -2.0],
                    ),
                )
                .constant("kernel_sizes", [2, 2, 2])
                .constant("pad_type", "valid")
                .expect(Tensor::floats(DType::F16, &[1, 1, 1, 2, 1], &[4.0, 4.0])),
        ]
    }
}
