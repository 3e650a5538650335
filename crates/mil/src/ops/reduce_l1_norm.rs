//! `reduce_l1_norm`: the sum of magnitudes along `axes` (all if left out), which the result keeps with extent 1 if
//! `keep_dims` is true. Integers wrap.

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{floats, ints, shaped, unary};
use crate::ops::support::reduce;
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct ReduceL1Norm;

impl Op for ReduceL1Norm {
    fn name(&self) -> &'static str {
        "reduce_l1_norm"
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
        reduce::eval(
            x,
            out,
            |l, v| l.sum(v, f32::abs),
            |l, v| l.fold(v, 0, |sum: i32, v: i32| sum.wrapping_add(v.wrapping_abs())),
        )
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            unary("all axes", shaped(&[2, 3], &[1.0, -2.0, 3.0, 4.0, 5.0, -6.0]), shaped(&[], &[21.0])),
            unary("a negative axis", shaped(&[2, 3], &[1.0, -2.0, 3.0, 4.0, 5.0, -6.0]), floats(&[5.0, 7.0, 9.0]))
                .constant("axes", [-2]),
            unary(
                "keeps a dimension",
                shaped(&[2, 3], &[1.0, -2.0, 3.0, 4.0, 5.0, -6.0]),
                shaped(&[2, 1], &[6.0, 15.0]),
            )
            .constant("axes", [1])
            .constant("keep_dims", true),
            unary(
                "axes that are no neighbours",
                shaped(&[2, 2, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]),
                floats(&[14.0, 22.0]),
            )
            .constant("axes", [2, 0]),
            unary("integers", Tensor::ints(DType::I32, &[2, 2], &[1, -2, 7, 8]), ints(&[3, 15])).constant("axes", [1]),
        ]
    }
}
