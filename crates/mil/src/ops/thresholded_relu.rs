//! `thresholded_relu`: `x`, or 0 where `x` is below `alpha`, elementwise.

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::elementwise;
use crate::ops::support::examples::{floats, unary};
use crate::types::Opset;

pub(super) struct ThresholdedRelu;

impl Op for ThresholdedRelu {
    fn name(&self) -> &'static str {
        "thresholded_relu"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::required("alpha")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        elementwise::infer_with_numbers(x, 2)
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let alpha = x.f32(1)?;
        elementwise::eval_float_unary(x, out, |v| if v < alpha { 0.0 } else { v })
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            unary("at, above and below", floats(&[1.0, 1.5, 0.5, -3.0]), floats(&[1.0, 1.5, 0.0, 0.0]))
                .constant("alpha", 1f32),
        ]
    }
}
