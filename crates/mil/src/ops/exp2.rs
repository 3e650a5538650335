//! `exp2`: 2 to the power of `x`, elementwise. Of integers, the power is cut off towards zero and saturates.

use std::f32::consts;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::elementwise;
use crate::ops::support::examples::{floats, ints, unary};
use crate::types::Opset;

pub(super) struct Exp2;

impl Op for Exp2 {
    fn name(&self) -> &'static str {
        "exp2"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        elementwise::infer_unary(x)
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        elementwise::eval_unary(x, out, f32::exp2, |v| {
            if v < 0 { 0 } else { 1i32.checked_shl(v as u32).filter(|&p| p > 0).unwrap_or(i32::MAX) }
        })
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            unary("floats", floats(&[0.0, 3.0, -1.0, 0.5]), floats(&[1.0, 8.0, 0.5, consts::SQRT_2])),
            unary(
                "integers",
                ints(&[0, 5, 30, 31, -1, i32::MIN, i32::MAX]),
                ints(&[1, 32, 1 << 30, i32::MAX, 0, 0, i32::MAX]),
            ),
        ]
    }
}
