//! `ceil`: rounded up to an integer, elementwise.

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::elementwise;
use crate::ops::support::examples::{floats, unary};
use crate::types::Opset;

pub(super) struct Ceil;

impl Op for Ceil {
    fn name(&self) -> &'static str {
        "ceil"
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
        elementwise::eval_float_unary(x, out, f32::ceil)
    }

    fn cases(&self) -> Vec<Case> {
        vec![unary("values", floats(&[1.2, -1.2, 3.0, -0.5]), floats(&[2.0, -1.0, 3.0, 0.0]))]
    }
}
