//! `sinh`: the hyperbolic sine, elementwise.

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::elementwise;
use crate::ops::support::examples::{floats, unary};
use crate::types::Opset;

pub(super) struct Sinh;

impl Op for Sinh {
    fn name(&self) -> &'static str {
        "sinh"
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
        elementwise::eval_float_unary(x, out, f32::sinh)
    }

    fn cases(&self) -> Vec<Case> {
        vec![unary("values", floats(&[0.0, 1.0, -2.0]), floats(&[0.0, 1.175_201_2, -3.626_860_4]))]
    }
}
