//! `sqrt`: the square root, elementwise; not a number below 0.

use std::f32::consts;

use crate::case::Case;
use crate::lower::{Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{floats, unary};
use crate::ops::support::{elementwise, spread};
use crate::types::Opset;

pub(super) struct Sqrt;

impl Op for Sqrt {
    fn name(&self) -> &'static str {
        "sqrt"
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
        elementwise::eval_float_unary(x, out, f32::sqrt)
    }

    fn lower(&self, x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        spread::each(x, f32::sqrt)
    }

    fn cases(&self) -> Vec<Case> {
        vec![unary("values", floats(&[0.0, 2.0, 9.0, -1.0]), floats(&[0.0, consts::SQRT_2, 3.0, f32::NAN]))]
    }
}
