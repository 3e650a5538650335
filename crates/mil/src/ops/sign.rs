//! `sign`: 1, 0 or -1 as `x` is positive, zero or negative, elementwise.

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::elementwise;
use crate::ops::support::examples::{floats, ints, unary};
use crate::types::Opset;

pub(super) struct Sign;

impl Op for Sign {
    fn name(&self) -> &'static str {
        "sign"
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
        elementwise::eval_unary(
            x,
            out,
            |v| {
                if v > 0.0 {
                    1.0
                } else if v < 0.0 {
                    -1.0
                } else {
                    v
                }
            },
            i32::signum,
        )
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            unary("floats", floats(&[2.5, -1e-30, 0.0, f32::NAN]), floats(&[1.0, -1.0, 0.0, f32::NAN])),
            unary("integers", ints(&[5, i32::MIN, 0]), ints(&[1, -1, 0])),
        ]
    }
}
