//! `leaky_relu`: `x`, or `alpha · x` where `x` is negative, elementwise.

use crate::case::Case;
use crate::lower::{Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::unary;
use crate::ops::support::{elementwise, spread};
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct LeakyRelu;

impl Op for LeakyRelu {
    fn name(&self) -> &'static str {
        "leaky_relu"
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
        elementwise::eval_float_unary(x, out, |v| if v < 0.0 { alpha * v } else { v })
    }

    fn lower(&self, x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        let alpha = (x as &dyn Operands).f32(1).ok()?;
        spread::each(x, move |v| if v < 0.0 { alpha * v } else { v })
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            unary(
                "an alpha of another width",
                Tensor::floats(DType::F16, &[3], &[1.5, -2.0, 0.0]),
                Tensor::floats(DType::F16, &[3], &[1.5, -0.5, 0.0]),
            )
            .constant("alpha", 0.25f32),
        ]
    }
}
