//! `square`: the square, elementwise. Integers wrap.

use crate::case::Case;
use crate::lower::{Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{floats, ints, unary};
use crate::ops::support::{elementwise, spread};
use crate::types::Opset;

pub(super) struct Square;

impl Op for Square {
    fn name(&self) -> &'static str {
        "square"
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
        elementwise::eval_unary(x, out, |v| v * v, |v| v.wrapping_mul(v))
    }

    fn lower(&self, x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        spread::each(x, |v| v * v)
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            unary("floats", floats(&[1.5, -3.0, 1e30]), floats(&[2.25, 9.0, f32::INFINITY])),
            unary("integers wrap", ints(&[-3, 65_536]), ints(&[9, 0])),
        ]
    }
}
