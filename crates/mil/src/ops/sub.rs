//! `sub`: the difference of two tensors, elementwise with broadcasting. Integers wrap.

use crate::case::Case;
use crate::lower::{Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{binary, floats, ints, shaped};
use crate::ops::support::{elementwise, spread};
use crate::types::Opset;

pub(super) struct Sub;

impl Op for Sub {
    fn name(&self) -> &'static str {
        "sub"
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
        elementwise::eval_binary(x, out, |a, b| a - b, i32::wrapping_sub)
    }

    fn lower(&self, x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        spread::pairs(x, |a, b| a - b)
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            binary(
                "broadcasts a scalar",
                shaped(&[2, 2], &[1.0, 2.0, 3.0, 4.0]),
                shaped(&[], &[0.5]),
                shaped(&[2, 2], &[0.5, 1.5, 2.5, 3.5]),
            ),
            binary(
                "broadcasts the first operand",
                floats(&[1.0, 2.0]),
                shaped(&[2, 1], &[10.0, 20.0]),
                shaped(&[2, 2], &[-9.0, -8.0, -19.0, -18.0]),
            ),
            binary("integers wrap", ints(&[i32::MIN, 7]), ints(&[1, -3]), ints(&[i32::MAX, 10])),
        ]
    }
}
