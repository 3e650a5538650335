//! `linear_activation`: `alpha · x + beta`, elementwise.

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::elementwise;
use crate::ops::support::examples::{floats, unary};
use crate::types::Opset;

pub(super) struct LinearActivation;

impl Op for LinearActivation {
    fn name(&self) -> &'static str {
        "linear_activation"
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
        elementwise::eval_float_unary(x, out, |v| alpha * v + beta)
    }

    fn cases(&self) -> Vec<Case> {
        vec![unary("values", floats(&[1.5, -2.0]), floats(&[4.0, -3.0])).constant("alpha", 2f32).constant("beta", 1f32)]
    }
}
