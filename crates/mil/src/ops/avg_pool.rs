//! `avg_pool`: the mean of each window. The padding counts as zeros, or not at all with `exclude_padding_from_average`. A
//! window that ends behind the padding, which `ceil_mode` allows, counts what it covers.

use crate::case::Case;
use crate::lower::{Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::pooling;
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct AvgPool;

const EXCLUDE_PADDING_FROM_AVERAGE: usize = 6;

fn mean(sum: f32, image: usize, all: usize, exclude: bool) -> f32 {
    sum / if exclude { image } else { all }.max(1) as f32
}

impl Op for AvgPool {
    fn name(&self) -> &'static str {
        "avg_pool"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const {
            let [x, kernel_sizes, strides, pad_type, pad, ceil_mode] = pooling::PARAMS;
            &[x, kernel_sizes, strides, pad_type, pad, ceil_mode, Param::optional("exclude_padding_from_average")]
        }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        x.bool_or(EXCLUDE_PADDING_FROM_AVERAGE, false)?;
        pooling::infer(x)
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let exclude = x.bool_or(EXCLUDE_PADDING_FROM_AVERAGE, false)?;
        pooling::eval(x, &mut out[0], 0.0, |s, v| s + v, |sum, image, all| mean(sum, image, all, exclude))
    }

    fn lower(&self, x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        let exclude = (x as &dyn Operands).bool_or(EXCLUDE_PADDING_FROM_AVERAGE, false).ok()?;
        pooling::lower(x, 0.0, |s, v| s + v, move |sum, image, all| mean(sum, image, all, exclude))
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            Case::new("one axis, stride 1 by default")
                .input("x", Tensor::floats(DType::F16, &[1, 2, 4], &[-3.0, 2.0, -4.0, 2.0, -1.0, -4.0, 2.0, 2.0]))
                .constant("kernel_sizes", [2])
                .constant("pad_type", "valid")
                .expect(Tensor::floats(DType::F16, &[1, 2, 3], &[-0.5, -1.0, -1.0, -2.5, -1.0, 2.0])),
            Case::new("the padding counts")
                .input(
                    "x",
                    Tensor::floats(
                        DType::F16,
                        &[1, 1, 3, 4],
                        &[3.0, 4.0, 2.0, 3.0, -3.0, 4.0, 4.0, 2.0, 3.0, 2.0, 3.0, 4.0],
                    ),
                )
                .constant("kernel_sizes", [2, 2])
                .constant("strides", [2, 2])
                .constant("pad_type", "custom")
                .constant("pad", [1, 0, 1, 1])
                .expect(Tensor::floats(DType::F16, &[1, 1, 2, 3], &[0.75, 1.5, 0.75, 0.0, 3.25, 1.5])),
            Case::new("the padding does not count")
                .input(
                    "x",
                    Tensor::floats(
                        DType::F16,
                        &[1, 1, 3, 4],
                        &[0.0, 3.0, 4.0, -2.0, -4.0, -3.0, -4.0, -1.0, -4.0, -2.0, -2.0, 2.0],
                    ),
                )
                .constant("kernel_sizes", [2, 2])
                .constant("strides", [2, 2])
                .constant("pad_type", "custom")
                .constant("pad", [1, 0, 1, 1])
                .constant("exclude_padding_from_average", true)
                .expect(Tensor::floats(DType::F16, &[1, 1, 2, 3], &[0.0, 3.5, -2.0, -4.0, -2.75, 0.5])),
            Case::new("same")
                .input("x", Tensor::floats(DType::F16, &[1, 1, 5], &[-2.0, 4.0, -3.0, 4.0, 1.0]))
                .constant("kernel_sizes", [3])
                .constant("strides", [2])
                .constant("pad_type", "same")
                .constant("exclude_padding_from_average", true)
                .expect(Tensor::floats(DType::F16, &[1, 1, 3], &[1.0, 1.666_667, 2.5])),
            Case::new("same_lower")
                .input("x", Tensor::floats(DType::F16, &[1, 1, 4], &[-2.0, -4.0, -2.0, 1.0]))
                .constant("kernel_sizes", [2])
                .constant("pad_type", "same_lower")
                .expect(Tensor::floats(DType::F16, &[1, 1, 4], &[-1.0, -3.0, -3.0, -0.5])),
            Case::new("extents rounded up")
                .input("x", Tensor::floats(DType::F16, &[1, 1, 5], &[-4.0, -3.0, -3.0, 2.0, -4.0]))
                .constant("kernel_sizes", [2])
                .constant("strides", [2])
                .constant("pad_type", "custom")
                .constant("pad", [0, 0])
                .constant("ceil_mode", true)
                .expect(Tensor::floats(DType::F16, &[1, 1, 3], &[-3.5, -0.5, -4.0])),
            Case::new("three axes")
                .input("x", Tensor::floats(DType::F16, &[1, 1, 2, 2, 2], &[-4.0, 0.0, -2.0, 1.0, 4.0, 3.0, 0.0, 1.0]))
                .constant("kernel_sizes", [2, 2, 1])
                .constant("pad_type", "valid")
                .expect(Tensor::floats(DType::F16, &[1, 1, 1, 1, 2], &[-0.5, 1.25])),
        ]
    }
}
