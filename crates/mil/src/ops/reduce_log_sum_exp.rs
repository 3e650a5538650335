//! `reduce_log_sum_exp`: the natural logarithm of the sum of e to the power of the elements along `axes` (all if left
//! out), which the result keeps with extent 1 if `keep_dims` is true. Of integers, it is cut off towards zero.

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{floats, ints, shaped, unary};
use crate::ops::support::{elementwise, lanes, reduce};
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct ReduceLogSumExp;

fn float(lane: lanes::Lane<'_>, v: &[f32]) -> f32 {
    let most = lane.fold(v, f32::NEG_INFINITY, elementwise::max);
    if most.is_infinite() { most } else { lane.sum(v, |v| (v - most).exp()).ln() + most }
}

fn int(lane: lanes::Lane<'_>, v: &[i32]) -> i32 {
    let most = f64::from(lane.fold(v, i32::MIN, i32::max));
    (reduce::wide_sum(lane, v, |v| (v - most).exp()).ln() + most) as i32
}

impl Op for ReduceLogSumExp {
    fn name(&self) -> &'static str {
        "reduce_log_sum_exp"
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
        reduce::eval(x, out, float, int)
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            unary("all axes", shaped(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), shaped(&[], &[6.456_193_4])),
            unary(
                "a negative axis",
                shaped(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
                floats(&[4.048_587_3, 5.048_587_3, 6.048_587_3]),
            )
            .constant("axes", [-2]),
            unary(
                "keeps a dimension",
                shaped(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
                shaped(&[2, 1], &[3.407_606, 6.407_606]),
            )
            .constant("axes", [1])
            .constant("keep_dims", true),
            unary("integers", Tensor::ints(DType::I32, &[2, 2], &[1, 2, 7, 80]), ints(&[2, 80])).constant("axes", [1]),
            unary("large numbers do not overflow", floats(&[1000.0, 1000.0]), shaped(&[], &[1_000.693_1])),
            unary("nothing but minus infinity", floats(&[f32::NEG_INFINITY; 2]), shaped(&[], &[f32::NEG_INFINITY])),
        ]
    }
}
