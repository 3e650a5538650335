//! `scaled_tanh`: `alpha · tanh(beta · x)`, elementwise.

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::elementwise;
use crate::ops::support::examples::{floats, unary};
use crate::types::Opset;

pub(super) struct ScaledTanh;

impl Op for ScaledTanh {
    fn name(&self) -> &'static str {
        "scaled_tanh"
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
        elementwise::eval_float_unary(x, out, |v| alpha * (beta * v).tanh())
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            unary("values", floats(&[0.5, -0.25]), floats(&[1.523_188_3, -0.924_234_3]))
                .constant("alpha", 2f32)
                .constant("beta", 2f32),
        ]
    }
}
