//! `log`: the natural logarithm of `x + epsilon`, elementwise; `epsilon` is 1e-45 if it is left out.

use std::f32::consts;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::elementwise;
use crate::ops::support::examples::{floats, unary};
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct Log;

impl Op for Log {
    fn name(&self) -> &'static str {
        "log"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::optional("epsilon")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        elementwise::infer_with_numbers(x, 2)
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let epsilon = x.f32_or(1, 1e-45)?;
        elementwise::eval_float_unary(x, out, |v| (v + epsilon).ln())
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            unary(
                "the default epsilon",
                floats(&[1.0, 2.0, 0.0, -1.0]),
                floats(&[0.0, consts::LN_2, -103.278_93, f32::NAN]),
            ),
            unary(
                "an epsilon of another width",
                Tensor::floats(DType::F16, &[1], &[1.0]),
                Tensor::floats(DType::F16, &[1], &[consts::LN_2]),
            )
            .constant("epsilon", 1f32),
        ]
    }
}
