//! `mod`: the remainder of the division rounded down, elementwise with broadcasting: it has the sign of the divisor. An
//! integer remainder is 0 where the divisor is 0.

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::elementwise;
use crate::ops::support::examples::{binary, floats, ints};
use crate::types::Opset;

pub(super) struct Mod;

fn remainder(a: f32, b: f32) -> f32 {
    let rest = a % b;
    if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }
}

fn integer(a: i32, b: i32) -> i32 {
    let rest = a.wrapping_rem(b);
    if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }
}

impl Op for Mod {
    fn name(&self) -> &'static str {
        "mod"
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
        elementwise::eval_binary(x, out, remainder, |a, b| if b == 0 { 0 } else { integer(a, b) })
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            binary(
                "has the sign of the divisor",
                floats(&[7.0, -7.0, 7.0, -7.0, -1.0]),
                floats(&[3.0, 3.0, -3.0, -3.0, f32::INFINITY]),
                floats(&[1.0, 2.0, -2.0, -1.0, f32::INFINITY]),
            ),
            binary("no number at a zero divisor", floats(&[1.0]), floats(&[0.0]), floats(&[f32::NAN])),
            binary(
                "integers",
                ints(&[7, -7, 7, -7, 5, i32::MIN]),
                ints(&[3, 3, -3, -3, 0, -1]),
                ints(&[1, 2, -2, -1, 0, 0]),
            ),
        ]
    }
}
