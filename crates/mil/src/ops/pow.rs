//! `pow`: a tensor to the power of another, elementwise with broadcasting. Integers wrap; an integer to a negative
//! power is the quotient cut off towards zero.

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::elementwise;
use crate::ops::support::examples::{binary, floats, ints, shaped};
use crate::types::Opset;

pub(super) struct Pow;

fn integer(a: i32, b: i32) -> i32 {
    match (a, u32::try_from(b)) {
        (_, Ok(power)) => a.wrapping_pow(power),
        (1, _) => 1,
        (-1, _) => 1 - 2 * (b & 1),
        _ => 0,
    }
}

impl Op for Pow {
    fn name(&self) -> &'static str {
        "pow"
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
        elementwise::eval_binary(x, out, |a, b| if b == 2.0 { a * a } else { a.powf(b) }, integer)
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            binary(
                "squares",
                shaped(&[2, 2], &[1.5, -3.0, 0.0, 1e20]),
                shaped(&[], &[2.0]),
                shaped(&[2, 2], &[2.25, 9.0, 0.0, f32::INFINITY]),
            ),
            binary(
                "floats",
                floats(&[2.0, 4.0, -8.0, 9.0]),
                floats(&[-1.0, 0.5, 1.0 / 3.0, 0.0]),
                floats(&[0.5, 2.0, f32::NAN, 1.0]),
            ),
            binary(
                "integers",
                ints(&[3, -2, 2, -1, 5, 7, 0]),
                ints(&[4, 3, 32, -3, -2, 0, -1]),
                ints(&[81, -8, 0, -1, 0, 1, 0]),
            ),
        ]
    }
}
