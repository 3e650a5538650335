//! `cos`: the cosine of radians, elementwise.

use std::f32::consts;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::elementwise;
use crate::ops::support::examples::{floats, unary};
use crate::types::Opset;

pub(super) struct Cos;

impl Op for Cos {
    fn name(&self) -> &'static str {
        "cos"
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
        elementwise::eval_float_unary(x, out, f32::cos)
    }

    fn cases(&self) -> Vec<Case> {
        vec![unary(
            "values",
            floats(&[0.0, 1.0, -1.0, consts::PI, 1000.0]),
            floats(&[1.0, 0.540_302_3, 0.540_302_3, -1.0, 0.562_379_1]),
        )]
    }
}
