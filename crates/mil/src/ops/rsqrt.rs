//! `rsqrt`: the reciprocal of the square root of `x + epsilon`, elementwise; `epsilon` is 1e-12 if it is left out.

use std::f32::consts;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::elementwise;
use crate::ops::support::examples::{floats, unary};
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct Rsqrt;

impl Op for Rsqrt {
    fn name(&self) -> &'static str {
        "rsqrt"
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
        let epsilon = x.f32_or(1, 1e-12)?;
        elementwise::eval_float_unary(x, out, |v| 1.0 / (v + epsilon).sqrt())
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            unary(
                "the default epsilon",
                floats(&[4.0, 2.0, 0.0, -1.0]),
                floats(&[0.5, consts::FRAC_1_SQRT_2, 1e6, f32::NAN]),
            ),
            unary(
                "an epsilon of another width",
                Tensor::floats(DType::F16, &[1], &[3.0]),
                Tensor::floats(DType::F16, &[1], &[0.5]),
            )
            .constant("epsilon", 1f32),
        ]
    }
}
