//! `reduce_l2_norm`: the square root of the sum of squares along `axes` (all if left out), which the result keeps with
//! extent 1 if `keep_dims` is true. Of integers, it is cut off.

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{floats, ints, shaped, unary};
use crate::ops::support::reduce;
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct ReduceL2Norm;

impl Op for ReduceL2Norm {
    fn name(&self) -> &'static str {
        "reduce_l2_norm"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        reduce::PARAMS
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        reduce::infer(x)
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        reduce::eval(x, out, |l, v| l.sum(v, |v| v * v).sqrt(), |l, v| reduce::wide_sum(l, v, |v| v * v).sqrt() as i32)
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            unary("all axes", shaped(&[2, 3], &[1.0, -2.0, 3.0, 4.0, 5.0, -6.0]), shaped(&[], &[9.539_392])),
            unary(
                "a negative axis",
                shaped(&[2, 3], &[1.0, -2.0, 3.0, 4.0, 5.0, -6.0]),
                floats(&[4.123_105_5, 5.385_164_7, 6.708_204]),
            )
            .constant("axes", [-2]),
            unary(
                "keeps a dimension",
                shaped(&[2, 3], &[1.0, -2.0, 3.0, 4.0, 5.0, -6.0]),
                shaped(&[2, 1], &[3.741_657_5, 8.774_964]),
            )
            .constant("axes", [1])
            .constant("keep_dims", true),
            unary(
                "axes that are no neighbours",
                shaped(&[2, 2, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]),
                floats(&[8.124_039, 11.747_34]),
            )
            .constant("axes", [2, 0]),
            unary("integers", Tensor::ints(DType::I32, &[2, 2], &[1, -2, 7, 8]), ints(&[2, 10])).constant("axes", [1]),
        ]
    }
}
