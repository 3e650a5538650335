//! `elu`: `x`, or `alpha · (exp(x) - 1)` where `x` is negative, elementwise.

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::elementwise;
use crate::ops::support::examples::{floats, unary};
use crate::types::Opset;

pub(super) struct Elu;

impl Op for Elu {
    fn name(&self) -> &'static str {
        "elu"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::required("alpha")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        elementwise::infer_with_numbers(x, 2)
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let alpha = x.f32(1)?;
        elementwise::eval_float_unary(x, out, |v| if v < 0.0 { alpha * v.exp_m1() } else { v })
    }

    fn cases(&self) -> Vec<Case> {
        vec![unary("both sides", floats(&[1.5, -1.0, 0.0]), floats(&[1.5, -1.264_241_1, 0.0])).constant("alpha", 2f32)]
    }
}
