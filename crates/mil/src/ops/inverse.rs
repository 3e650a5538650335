//! `inverse`: the reciprocal of `x + epsilon`, elementwise; `epsilon` is 1e-4 if it is left out.

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::elementwise;
use crate::ops::support::examples::{floats, unary};
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct Inverse;

impl Op for Inverse {
    fn name(&self) -> &'static str {
        "inverse"
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
        let epsilon = x.f32_or(1, 1e-4)?;
        elementwise::eval_float_unary(x, out, |v| 1.0 / (v + epsilon))
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            unary("the default epsilon", floats(&[1.0, 0.0]), floats(&[0.999_900_04, 10_000.0])),
            unary(
                "an epsilon of another width",
                Tensor::floats(DType::F16, &[2], &[2.0, -4.0]),
                Tensor::floats(DType::F16, &[2], &[0.5, -0.25]),
            )
            .constant("epsilon", 0f32),
        ]
    }
}
