//! `clip`: `x` held within `alpha` and `beta`, elementwise.

use crate::case::Case;
use crate::lower::{Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{floats, unary};
use crate::ops::support::{elementwise, spread};
use crate::types::Opset;

pub(super) struct Clip;

impl Op for Clip {
    fn name(&self) -> &'static str {
        "clip"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::required("alpha"), Param::required("beta")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        elementwise::infer_with_numbers(x, 3)
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let (alpha, beta) = (x.f32(1)?, x.f32(2)?);
        elementwise::eval_float_unary(x, out, |v| elementwise::min(elementwise::max(v, alpha), beta))
    }

    fn lower(&self, x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        let (alpha, beta) = ((x as &dyn Operands).f32(1).ok()?, (x as &dyn Operands).f32(2).ok()?);
        spread::each(x, move |v| elementwise::min(elementwise::max(v, alpha), beta))
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            unary("both ends", floats(&[-2.0, 0.5, 7.0, f32::NAN]), floats(&[-1.0, 0.5, 6.0, f32::NAN]))
                .constant("alpha", -1f32)
                .constant("beta", 6f32),
        ]
    }
}
