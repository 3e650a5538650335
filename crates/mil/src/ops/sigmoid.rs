//! `sigmoid`: `1 / (1 + exp(-x))`, elementwise.

use anemone_kernels::elementwise::Unary;

use crate::case::Case;
use crate::lower::{Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{floats, unary};
use crate::ops::support::{elementwise, spread};
use crate::types::Opset;

pub(super) struct Sigmoid;

impl Op for Sigmoid {
    fn name(&self) -> &'static str {
        "sigmoid"
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
        elementwise::eval_float_unary(x, out, |v| 1.0 / (1.0 + (-v).exp()))
    }

    fn lower(&self, x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        spread::function(x, Unary::Sigmoid)
    }

    fn cases(&self) -> Vec<Case> {
        vec![unary(
            "values",
            floats(&[0.0, 1.0, -2.0, 1000.0, -1000.0]),
            floats(&[0.5, 0.731_058_6, 0.119_202_92, 1.0, 0.0]),
        )]
    }
}
