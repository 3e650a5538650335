//! `reduce_max`: the largest element along `axes` (all if left out), which the result keeps with extent 1 if
//! `keep_dims` is true.

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{floats, ints, shaped, unary};
use crate::ops::support::{elementwise, reduce};
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct ReduceMax;

impl Op for ReduceMax {
    fn name(&self) -> &'static str {
        "reduce_max"
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
            |l, v| l.fold(v, f32::NEG_INFINITY, elementwise::max),
            |l, v| l.fold(v, i32::MIN, i32::max),
        )
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            unary("all axes", shaped(&[2, 3], &[1.0, -2.0, 3.0, 4.0, 5.0, -6.0]), shaped(&[], &[5.0])),
            unary("a negative axis", shaped(&[2, 3], &[1.0, -2.0, 3.0, 4.0, 5.0, -6.0]), floats(&[4.0, 5.0, 3.0]))
                .constant("axes", [-2]),
            unary(
                "keeps a dimension",
                shaped(&[2, 3], &[1.0, -2.0, 3.0, 4.0, 5.0, -6.0]),
                shaped(&[2, 1], &[3.0, 5.0]),
            )
            .constant("axes", [1])
            .constant("keep_dims", true),
            unary(
                "axes that are no neighbours",
                shaped(&[2, 2, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]),
                floats(&[6.0, 8.0]),
            )
            .constant("axes", [2, 0]),
            unary("integers", Tensor::ints(DType::I32, &[2, 2], &[1, -2, 7, 8]), ints(&[1, 8])).constant("axes", [1]),
            unary("what is not a number wins", floats(&[1.0, f32::NAN, 2.0]), shaped(&[], &[f32::NAN])),
        ]
    }
}
