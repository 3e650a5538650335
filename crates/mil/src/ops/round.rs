//! `round`: rounded to the nearest integer, elementwise; halves go to the even one.

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::elementwise;
use crate::ops::support::examples::{floats, unary};
use crate::types::Opset;

pub(super) struct Round;

impl Op for Round {
    fn name(&self) -> &'static str {
        "round"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        elementwise::infer_float_unary(x)
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        elementwise::eval_float_unary(x, out, f32::round_ties_even)
    }

    fn cases(&self) -> Vec<Case> {
        vec![unary(
            "halves go to the even integer",
            floats(&[0.5, 1.5, 2.5, -0.5, -1.5, 1.2, -1.7]),
            floats(&[0.0, 2.0, 2.0, 0.0, -2.0, 1.0, -2.0]),
        )]
    }
}
