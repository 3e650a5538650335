//! `reduce_log_sum`: the natural logarithm of the sum along `axes` (all if left out), which the result keeps with
//! extent 1 if `keep_dims` is true. Of integers, it is cut off towards zero.

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{floats, ints, shaped, unary};
use crate::ops::support::reduce;
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct ReduceLogSum;

impl Op for ReduceLogSum {
    fn name(&self) -> &'static str {
        "reduce_log_sum"
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
        reduce::eval(x, out, |l, v| l.sum(v, |v| v).ln(), |l, v| reduce::wide_sum(l, v, |v| v).ln() as i32)
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            unary("all axes", shaped(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), shaped(&[], &[3.044_522_5])),
            unary(
                "a negative axis",
                shaped(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
                floats(&[1.609_438, 1.945_910_1, 2.197_224_6]),
            )
            .constant("axes", [-2]),
            unary(
                "keeps a dimension",
                shaped(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
                shaped(&[2, 1], &[1.791_759_5, 2.708_050_3]),
            )
            .constant("axes", [1])
            .constant("keep_dims", true),
            unary("integers", Tensor::ints(DType::I32, &[2, 2], &[1, 2, 7, 80]), ints(&[1, 4])).constant("axes", [1]),
        ]
    }
}
