//! `local_response_norm`: `x / (k + alpha/size · sum of squares)^beta`, with the sum over `size` neighbouring channels
//! (axis 1): `size / 2` before and `(size - 1) / 2` after each, rounded down, as far as there are that many. `alpha` is
//! 1e-4, `beta` 0.75 and `k` 1 if they are left out.
//!
//! This is coremltools' formula, with PyTorch's window. coremltools' own test on a device of shape (1, 3, 2) expects what
//! a single channel would give, as if tensors of rank 3 had their channels on axis 0; Apple documents no such exception.

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{shaped, unary};
use crate::ops::support::{channels, elementwise};
use crate::types::Opset;

pub(super) struct LocalResponseNorm;

const SIZE: usize = 1;
const ALPHA: usize = 2;
const BETA: usize = 3;
const K: usize = 4;

impl Op for LocalResponseNorm {
    fn name(&self) -> &'static str {
        "local_response_norm"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::required("x"),
                Param::required("size"),
                Param::optional("alpha"),
                Param::optional("beta"),
                Param::optional("k"),
            ]
        }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        channels::count(x)?;
        let (dtype, shape) = x.ty_at(SIZE, 0);
        if !dtype.is_int() || shape.iter().any(|&n| n != 1) {
            return Err(x.bad(SIZE, "one integer", x.ty(SIZE)));
        }
        [ALPHA, BETA, K].into_iter().filter(|&p| x.has(p)).try_for_each(|p| elementwise::expect_number(x, p))?;
        elementwise::infer_float_unary(x)
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let (shape, data) = (x.shape(0), x.f32s(0)?);
        let (alpha, beta, k) = (x.f32_or(ALPHA, 1e-4)?, x.f32_or(BETA, 0.75)?, x.f32_or(K, 1.0)?);
        let size = x.i32(SIZE)?;
        let size = usize::try_from(size).ok().filter(|&n| n > 0).ok_or_else(|| x.bad(SIZE, "1 or more", size))?;
        let n = shape[channels::CHANNEL];
        let out = out[0].f32s()?;
        channels::for_each(shape, Some(channels::CHANNEL), |c, range| {
            let space = range.len();
            let (first, last) = (c.saturating_sub(size / 2), c.saturating_add((size - 1) / 2).min(n - 1));
            for at in range {
                let sum: f32 = (first..=last).map(|j| data[at + j * space - c * space]).map(|v| v * v).sum();
                out[at] = data[at] / (k + alpha / size as f32 * sum).powf(beta);
            }
        });
        Ok(())
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            unary(
                "an odd window",
                shaped(&[1, 3, 1], &[1.0, 2.0, 3.0]),
                shaped(&[1, 3, 1], &[0.522_232_95, 0.774_596_7, 1.192_079_1]),
            )
            .constant("size", 3)
            .constant("alpha", 1f32)
            .constant("beta", 0.5f32)
            .constant("k", 2f32),
            unary(
                "an even window reaches further back",
                shaped(&[1, 3, 2], &[1.0, 0.0, 2.0, 0.0, 3.0, 1.0]),
                shaped(&[1, 3, 2], &[0.666_666_7, 0.0, 0.571_428_6, 0.0, 0.4, 0.666_666_7]),
            )
            .constant("size", 2)
            .constant("alpha", 1f32)
            .constant("beta", 1f32),
            unary("what is left out has its default", shaped(&[1, 1, 1], &[100.0]), shaped(&[1, 1, 1], &[59.460_354]))
                .constant("size", 1),
        ]
    }
}
