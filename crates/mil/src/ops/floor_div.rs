//! `floor_div`: the quotient of two tensors rounded down, elementwise with broadcasting. An integer quotient is 0 where
//! the divisor is 0.

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::elementwise;
use crate::ops::support::examples::{binary, floats, ints};
use crate::types::Opset;

pub(super) struct FloorDiv;

/// The exact quotient rounded down, by way of the remainder: dividing first could round up to the next integer.
fn quotient(a: f32, b: f32) -> f32 {
    if b == 0.0 {
        return a / b;
    }
    let rest = a % b;
    let quotient = (a - rest) / b - if rest != 0.0 && (rest < 0.0) != (b < 0.0) { 1.0 } else { 0.0 };
    quotient.round()
}

fn down(a: i32, b: i32) -> i32 {
    let below = a.wrapping_rem(b) != 0 && (a < 0) != (b < 0);
    a.wrapping_div(b) - i32::from(below)
}

impl Op for FloorDiv {
    fn name(&self) -> &'static str {
        "floor_div"
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
        elementwise::eval_binary(x, out, quotient, |a, b| if b == 0 { 0 } else { down(a, b) })
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            binary(
                "rounds down",
                floats(&[7.0, -7.0, 7.0, -0.5, 1.0]),
                floats(&[2.0, 2.0, -2.0, f32::INFINITY, 0.0]),
                floats(&[3.0, -4.0, -4.0, -1.0, f32::INFINITY]),
            ),
            binary("the exact quotient counts, not the rounded one", floats(&[1.0]), floats(&[0.1]), floats(&[9.0])),
            binary(
                "integers",
                ints(&[7, -7, 7, -7, 5, i32::MIN]),
                ints(&[2, 2, -2, -2, 0, -1]),
                ints(&[3, -4, -4, 3, 0, i32::MIN]),
            ),
        ]
    }
}
