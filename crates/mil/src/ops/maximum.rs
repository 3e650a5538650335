//! `maximum`: the larger of two tensors, elementwise with broadcasting; not a number where either is not.

use crate::case::Case;
use crate::lower::{Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{binary, floats, ints};
use crate::ops::support::{elementwise, spread};
use crate::types::Opset;

pub(super) struct Maximum;

impl Op for Maximum {
    fn name(&self) -> &'static str {
        "maximum"
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
        elementwise::eval_binary(x, out, elementwise::max, i32::max)
    }

    fn lower(&self, x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        spread::pairs(x, elementwise::max)
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            binary(
                "propagates what is not a number",
                floats(&[1.0, -1.0, f32::NAN, 3.0]),
                floats(&[0.0, 2.0, 0.0, f32::NAN]),
                floats(&[1.0, 2.0, f32::NAN, f32::NAN]),
            ),
            binary("integers", ints(&[1, -5]), ints(&[0]), ints(&[1, 0])),
        ]
    }
}
