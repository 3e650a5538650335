//! `reduce_argmax`: the index of the largest element along `axis` (the last if left out), which the result keeps with
//! extent 1 if `keep_dims` is true: of several, the first. What is not a number wins. The index is an `int32`, or what
//! `output_dtype` says.

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{floats, ints, shaped, unary};
use crate::ops::support::reduce;
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct ReduceArgmax;

impl Op for ReduceArgmax {
    fn name(&self) -> &'static str {
        "reduce_argmax"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        reduce::ARG_PARAMS
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        reduce::infer_arg(x)
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        reduce::eval_arg(x, out, |a, b| a > b, |a, b| a > b)
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            unary(
                "the last axis if nothing is said",
                shaped(&[2, 3], &[1.0, -2.0, 3.0, 4.0, 5.0, -6.0]),
                ints(&[2, 1]),
            ),
            unary(
                "keeps a dimension",
                shaped(&[2, 3], &[1.0, -2.0, 3.0, 4.0, 5.0, -6.0]),
                Tensor::ints(DType::I32, &[1, 3], &[1, 1, 0]),
            )
            .constant("axis", -2)
            .constant("keep_dims", true),
            unary(
                "the first of several, as uint16",
                floats(&[1.0, 0.0, 3.0, 3.0]),
                Tensor::ints(DType::U16, &[], &[2]),
            )
            .constant("output_dtype", "uint16"),
            unary("what is not a number", floats(&[1.0, f32::NAN, 3.0, f32::NAN]), Tensor::ints(DType::I32, &[], &[1])),
            unary("integers", Tensor::ints(DType::I32, &[2, 3], &[3, -1, 2, 1, 2, 9]), ints(&[0, 2])),
        ]
    }
}
