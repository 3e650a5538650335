//! `sigmoid_hard`: `alpha · x + beta` held within 0 and 1, elementwise.

use crate::case::Case;
use crate::lower::{Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{floats, unary};
use crate::ops::support::{elementwise, spread};
use crate::types::Opset;

pub(super) struct SigmoidHard;

impl Op for SigmoidHard {
    fn name(&self) -> &'static str {
        "sigmoid_hard"
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
        elementwise::eval_float_unary(x, out, |v| elementwise::min(elementwise::max(alpha * v + beta, 0.0), 1.0))
    }

    fn lower(&self, x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        let (alpha, beta) = ((x as &dyn Operands).f32(1).ok()?, (x as &dyn Operands).f32(2).ok()?);
        spread::each(x, move |v| elementwise::min(elementwise::max(alpha * v + beta, 0.0), 1.0))
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            unary("both ends", floats(&[0.0, 1.0, 9.0, -9.0]), floats(&[0.5, 0.75, 1.0, 0.0]))
                .constant("alpha", 0.25f32)
                .constant("beta", 0.5f32),
        ]
    }
}
