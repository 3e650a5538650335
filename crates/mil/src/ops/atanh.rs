//! `atanh`: the inverse hyperbolic tangent, elementwise; not a number outside [-1, 1].

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::elementwise;
use crate::ops::support::examples::{floats, unary};
use crate::types::Opset;

pub(super) struct Atanh;

impl Op for Atanh {
    fn name(&self) -> &'static str {
        "atanh"
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
        elementwise::eval_float_unary(x, out, f32::atanh)
    }

    fn cases(&self) -> Vec<Case> {
        vec![unary(
            "values",
            floats(&[0.5, -0.25, 0.0, 1.0, 2.0]),
            floats(&[0.549_306_15, -0.255_412_8, 0.0, f32::INFINITY, f32::NAN]),
        )]
    }
}
