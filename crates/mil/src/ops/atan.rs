//! `atan`: the inverse tangent in radians, elementwise.

use std::f32::consts;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::elementwise;
use crate::ops::support::examples::{floats, unary};
use crate::types::Opset;

pub(super) struct Atan;

impl Op for Atan {
    fn name(&self) -> &'static str {
        "atan"
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
        elementwise::eval_float_unary(x, out, f32::atan)
    }

    fn cases(&self) -> Vec<Case> {
        vec![unary(
            "values",
            floats(&[1.0, -2.0, 0.0, f32::INFINITY]),
            floats(&[consts::FRAC_PI_4, -1.107_148_7, 0.0, consts::FRAC_PI_2]),
        )]
    }
}
