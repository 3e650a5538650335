//! `erf`: the error function, elementwise.

use anemone_kernels::elementwise::Unary;

use crate::case::Case;
use crate::lower::{Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::erf::erf;
use crate::ops::support::examples::{floats, unary};
use crate::ops::support::{elementwise, spread};
use crate::types::Opset;

pub(super) struct Erf;

impl Op for Erf {
    fn name(&self) -> &'static str {
        "erf"
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
        elementwise::eval_float_unary(x, out, erf)
    }

    fn lower(&self, x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        spread::function(x, Unary::Erf)
    }

    fn cases(&self) -> Vec<Case> {
        vec![unary(
            "values",
            floats(&[0.0, 0.5, -1.0, 2.5, 10.0]),
            floats(&[0.0, 0.520_499_9, -0.842_700_8, 0.999_593, 1.0]),
        )]
    }
}
