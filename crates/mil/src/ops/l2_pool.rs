//! `l2_pool`: the root of the sum of squares of each window.

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::pooling;
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct L2Pool;

impl Op for L2Pool {
    fn name(&self) -> &'static str {
        "l2_pool"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        &pooling::PARAMS
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        if x.shape(0).len() > 4 {
            return Err(x.bad(0, "rank 3 or 4", x.shape(0)));
        }
        pooling::infer(x)
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        pooling::eval(x, &mut out[0], 0.0, |s, v| s + v * v, |sum, _, _| sum.sqrt())
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            Case::new("two axes")
                .input(
                    "x",
                    Tensor::floats(DType::F16, &[1, 1, 3, 3], &[3.0, 0.0, 4.0, -3.0, -3.0, -1.0, -4.0, 0.0, 1.0]),
                )
                .constant("kernel_sizes", [2, 2])
                .constant("pad_type", "valid")
                .expect(Tensor::floats(DType::F16, &[1, 1, 2, 2], &[5.196_152, 5.099_02, 5.830_952, 3.316_625])),
            Case::new("one axis, padded")
                .input("x", Tensor::floats(DType::F16, &[1, 2, 3], &[1.0, -3.0, -3.0, 1.0, 1.0, 4.0]))
                .constant("kernel_sizes", [2])
                .constant("strides", [2])
                .constant("pad_type", "custom")
                .constant("pad", [1, 1])
                .expect(Tensor::floats(DType::F16, &[1, 2, 2], &[1.0, 4.242_64, 1.0, 4.123_106])),
        ]
    }
}
