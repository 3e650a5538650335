//! `reduce_mean`: the mean along `axes` (all if left out), which the result keeps with extent 1 if `keep_dims` is true.
//! Of integers, it is cut off towards zero.

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{floats, ints, shaped, unary};
use crate::ops::support::reduce;
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct ReduceMean;

impl Op for ReduceMean {
    fn name(&self) -> &'static str {
        "reduce_mean"
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
            |l, v| l.sum(v, |v| v) / l.len() as f32,
            |l, v| (reduce::wide_sum(l, v, |v| v) / l.len() as f64) as i32,
        )
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            unary("all axes", shaped(&[2, 3], &[1.0, -2.0, 3.0, 4.0, 5.0, -6.0]), shaped(&[], &[0.833_333_3])),
            unary("a negative axis", shaped(&[2, 3], &[1.0, -2.0, 3.0, 4.0, 5.0, -6.0]), floats(&[2.5, 1.5, -1.5]))
                .constant("axes", [-2]),
            unary(
                "keeps a dimension",
                shaped(&[2, 3], &[1.0, -2.0, 3.0, 4.0, 5.0, -6.0]),
                shaped(&[2, 1], &[0.666_666_7, 1.0]),
            )
            .constant("axes", [1])
            .constant("keep_dims", true),
            unary(
                "axes that are no neighbours",
                shaped(&[2, 2, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]),
                floats(&[3.5, 5.5]),
            )
            .constant("axes", [2, 0]),
            unary("integers", Tensor::ints(DType::I32, &[2, 2], &[1, -2, 7, 8]), ints(&[0, 7])).constant("axes", [1]),
            unary("a long row", floats(&[3.0; 35]), shaped(&[], &[3.0])),
        ]
    }
}
