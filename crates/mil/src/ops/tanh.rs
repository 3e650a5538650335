//! `tanh`: the hyperbolic tangent, elementwise.

use anemone_kernels::elementwise::Unary;

use crate::case::Case;
use crate::lower::{Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{floats, unary};
use crate::ops::support::{elementwise, spread};
use crate::types::Opset;

pub(super) struct Tanh;

impl Op for Tanh {
    fn name(&self) -> &'static str {
        "tanh"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        elementwise::infer_float_unary(x)
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        elementwise::eval_float_unary(x, out, f32::tanh)
    }

    fn lower(&self, x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        spread::function(x, Unary::Tanh)
    }

    fn cases(&self) -> Vec<Case> {
        vec![unary("values", floats(&[0.0, 1.0, -0.5, 100.0]), floats(&[0.0, 0.761_594_2, -0.462_117_16, 1.0]))]
    }
}
