//! `relu6`: `x` held within 0 and 6, elementwise.

use crate::case::Case;
use crate::lower::{Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{floats, unary};
use crate::ops::support::{elementwise, spread};
use crate::types::Opset;

pub(super) struct Relu6;

impl Op for Relu6 {
    fn name(&self) -> &'static str {
        "relu6"
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
        elementwise::eval_float_unary(x, out, |v| elementwise::min(elementwise::max(v, 0.0), 6.0))
    }

    fn lower(&self, x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        spread::each(x, |v| elementwise::min(elementwise::max(v, 0.0), 6.0))
    }

    fn cases(&self) -> Vec<Case> {
        vec![unary("values", floats(&[1.5, -2.0, 7.0, f32::NAN]), floats(&[1.5, 0.0, 6.0, f32::NAN]))]
    }
}
