//! `acos`: the inverse cosine in radians, elementwise; not a number outside [-1, 1].

use std::f32::consts;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::elementwise;
use crate::ops::support::examples::{floats, unary};
use crate::types::Opset;

pub(super) struct Acos;

impl Op for Acos {
    fn name(&self) -> &'static str {
        "acos"
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
        elementwise::eval_float_unary(x, out, f32::acos)
    }

    fn cases(&self) -> Vec<Case> {
        vec![unary(
            "values",
            floats(&[1.0, 0.5, 0.0, -1.0, 1.5]),
            floats(&[0.0, consts::FRAC_PI_3, consts::FRAC_PI_2, consts::PI, f32::NAN]),
        )]
    }
}
