//! `logical_or`: whether either of two tensors is true, elementwise with broadcasting.

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::elementwise;
use crate::ops::support::examples::{binary, bools};
use crate::tensor::Tensor;
use crate::types::Opset;

pub(super) struct LogicalOr;

impl Op for LogicalOr {
    fn name(&self) -> &'static str {
        "logical_or"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::required("y")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        elementwise::infer_logical(x)
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        elementwise::eval_logical(x, out, |a, b| a || b)
    }

    fn cases(&self) -> Vec<Case> {
        vec![binary(
            "every pair",
            Tensor::bools(&[2, 1], &[false, true]),
            bools(&[false, true]),
            Tensor::bools(&[2, 2], &[false, true, true, true]),
        )]
    }
}
