//! `softplus`: `log(1 + exp(x))`, elementwise.

use std::f32::consts;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::elementwise;
use crate::ops::support::examples::{floats, unary};
use crate::types::Opset;

pub(super) struct Softplus;

impl Op for Softplus {
    fn name(&self) -> &'static str {
        "softplus"
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
        elementwise::eval_float_unary(x, out, |v| (-v.abs()).exp().ln_1p() + v.max(0.0))
    }

    fn cases(&self) -> Vec<Case> {
        vec![unary(
            "values",
            floats(&[0.0, 1.0, -2.0, 1000.0, -1000.0]),
            floats(&[consts::LN_2, 1.313_261_7, 0.126_928_02, 1000.0, 0.0]),
        )]
    }
}
