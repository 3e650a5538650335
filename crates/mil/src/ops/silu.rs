//! `silu`: `x · sigmoid(x)`, elementwise.

use anemone_kernels::elementwise::Unary;

use crate::case::Case;
use crate::lower::{Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{floats, unary};
use crate::ops::support::{elementwise, spread};
use crate::types::Opset;

pub(super) struct Silu;

impl Op for Silu {
    fn name(&self) -> &'static str {
        "silu"
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
        elementwise::eval_float_unary(x, out, |v| v / (1.0 + (-v).exp()))
    }

    fn lower(&self, x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        spread::function(x, Unary::Silu)
    }

    fn cases(&self) -> Vec<Case> {
        vec![unary(
            "values",
            floats(&[0.0, 1.0, -2.0, 1000.0, -1000.0]),
            floats(&[0.0, 0.731_058_6, -0.238_405_84, 1000.0, 0.0]),
        )]
    }
}
