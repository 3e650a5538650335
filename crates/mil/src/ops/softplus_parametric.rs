//! `softplus_parametric`: `alpha · log(1 + exp(beta · x))`, with one `alpha` and `beta` for each channel (axis 1).

use std::f32::consts;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{floats, shaped, unary};
use crate::ops::support::{channels, elementwise};
use crate::types::Opset;

pub(super) struct SoftplusParametric;

impl Op for SoftplusParametric {
    fn name(&self) -> &'static str {
        "softplus_parametric"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::required("alpha"), Param::required("beta")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let n = channels::count(x)?;
        (1..3).try_for_each(|param| channels::expect(x, param, n))?;
        elementwise::infer_float_unary(x)
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let (data, alpha, beta) = (x.f32s(0)?, x.f32s(1)?, x.f32s(2)?);
        let out = out[0].f32s()?;
        channels::for_each(x.shape(0), Some(channels::CHANNEL), |c, range| {
            for (r, &v) in out[range.clone()].iter_mut().zip(&data[range]) {
                let v = beta[c] * v;
                *r = alpha[c] * ((-v.abs()).exp().ln_1p() + v.max(0.0));
            }
        });
        Ok(())
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            unary(
                "parameters for each channel",
                shaped(&[1, 2, 2], &[1.0, -1.0, 500.0, 0.0]),
                shaped(&[1, 2, 2], &[1.948_154, 0.948_154, -1000.0, -consts::LN_2]),
            )
            .input("alpha", floats(&[2.0, -1.0]))
            .input("beta", floats(&[0.5, 2.0])),
        ]
    }
}
