//! `clamped_relu`: `x`, or `alpha · x` where `x` is negative, at most `beta`, elementwise.

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::elementwise;
use crate::ops::support::examples::{floats, unary};
use crate::types::Opset;

pub(super) struct ClampedRelu;

impl Op for ClampedRelu {
    fn name(&self) -> &'static str {
        "clamped_relu"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::required("alpha"), Param::required("beta")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        elementwise::infer_with_numbers(x, 3)
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let (alpha, beta) = (x.f32(1)?, x.f32(2)?);
        elementwise::eval_float_unary(x, out, |v| elementwise::min(if v < 0.0 { alpha * v } else { v }, beta))
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            unary("both sides", floats(&[1.5, 9.0, -2.0, -40.0]), floats(&[1.5, 5.0, 1.0, 5.0]))
                .constant("alpha", -0.5f32)
                .constant("beta", 5f32),
        ]
    }
}
