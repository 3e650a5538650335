//! `softsign`: `x / (1 + |x|)`, elementwise.

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::elementwise;
use crate::ops::support::examples::{floats, unary};
use crate::types::Opset;

pub(super) struct Softsign;

impl Op for Softsign {
    fn name(&self) -> &'static str {
        "softsign"
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
        elementwise::eval_float_unary(x, out, |v| v / (1.0 + v.abs()))
    }

    fn cases(&self) -> Vec<Case> {
        vec![unary("values", floats(&[0.0, 1.0, -3.0]), floats(&[0.0, 0.5, -0.75]))]
    }
}
