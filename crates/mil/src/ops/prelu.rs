//! `prelu`: `x`, or `alpha · x` where `x` is negative, with one `alpha` for each channel (axis 1).

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{floats, shaped, unary};
use crate::ops::support::{channels, elementwise};
use crate::types::Opset;

pub(super) struct Prelu;

impl Op for Prelu {
    fn name(&self) -> &'static str {
        "prelu"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::required("alpha")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let n = channels::count(x)?;
        channels::expect(x, 1, n)?;
        elementwise::infer_float_unary(x)
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let (data, alpha) = (x.f32s(0)?, x.f32s(1)?);
        let out = out[0].f32s()?;
        channels::for_each(x.shape(0), Some(channels::CHANNEL), |c, range| {
            for (r, &v) in out[range.clone()].iter_mut().zip(&data[range]) {
                *r = if v < 0.0 { alpha[c] * v } else { v };
            }
        });
        Ok(())
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            unary(
                "a slope for each channel",
                shaped(&[1, 2, 2], &[1.0, -1.0, -2.0, 2.0]),
                shaped(&[1, 2, 2], &[1.0, -0.5, 4.0, 2.0]),
            )
            .input("alpha", floats(&[0.5, -2.0])),
        ]
    }
}
