//! `real_div`: the quotient of two tensors, elementwise with broadcasting. Of integers, the quotient is cut off towards
//! zero, and 0 where the divisor is 0.

use crate::case::Case;
use crate::lower::{Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{binary, floats, ints};
use crate::ops::support::{elementwise, spread};
use crate::types::Opset;

pub(super) struct RealDiv;

impl Op for RealDiv {
    fn name(&self) -> &'static str {
        "real_div"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::required("y")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        elementwise::infer_binary(x)
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        elementwise::eval_binary(x, out, |a, b| a / b, |a, b| if b == 0 { 0 } else { a.wrapping_div(b) })
    }

    fn lower(&self, x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        spread::pairs(x, |a, b| a / b)
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            binary(
                "floats",
                floats(&[1.0, -1.0, 0.0, 7.0]),
                floats(&[0.0, 0.0, 5.0, 2.0]),
                floats(&[f32::INFINITY, f32::NEG_INFINITY, 0.0, 3.5]),
            ),
            binary(
                "integers are cut off towards zero",
                ints(&[7, -7, 7, 5, i32::MIN]),
                ints(&[2, 2, -2, 0, -1]),
                ints(&[3, -3, -3, 0, i32::MIN]),
            ),
        ]
    }
}
