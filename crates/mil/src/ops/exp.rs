//! `exp`: e to the power of `x`, elementwise.

use std::f32::consts;

use anemone_kernels::elementwise::Unary;

use crate::case::Case;
use crate::lower::{Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{floats, unary};
use crate::ops::support::{elementwise, spread};
use crate::types::Opset;

pub(super) struct Exp;

impl Op for Exp {
    fn name(&self) -> &'static str {
        "exp"
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
        elementwise::eval_float_unary(x, out, f32::exp)
    }

    fn lower(&self, x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        spread::function(x, Unary::Exp)
    }

    fn cases(&self) -> Vec<Case> {
        vec![unary(
            "values",
            floats(&[0.0, 1.0, -2.0, 100.0, f32::NEG_INFINITY]),
            floats(&[1.0, consts::E, 0.135_335_28, f32::INFINITY, 0.0]),
        )]
    }
}
