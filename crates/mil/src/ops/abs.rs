//! `abs`: the magnitude, elementwise. Of integers, that of the least one wraps to itself.

use crate::case::Case;
use crate::lower::{Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{floats, ints, unary};
use crate::ops::support::{elementwise, spread};
use crate::types::Opset;

pub(super) struct Abs;

impl Op for Abs {
    fn name(&self) -> &'static str {
        "abs"
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
        elementwise::eval_unary(x, out, f32::abs, i32::wrapping_abs)
    }

    fn lower(&self, x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        spread::each(x, f32::abs)
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            unary("floats", floats(&[1.5, -2.5, -0.0, f32::NEG_INFINITY]), floats(&[1.5, 2.5, 0.0, f32::INFINITY])),
            unary("integers", ints(&[3, -3, i32::MIN]), ints(&[3, 3, i32::MIN])),
        ]
    }
}
