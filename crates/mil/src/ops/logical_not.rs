//! `logical_not`: the opposite of truth values.

use smallvec::smallvec;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{bools, unary};
use crate::types::{DType, Opset};

pub(super) struct LogicalNot;

impl Op for LogicalNot {
    fn name(&self) -> &'static str {
        "logical_not"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let ty = x.ty(0);
        if ty.dtype != DType::Bool {
            return Err(x.bad(0, "a tensor of truth values", ty.dtype));
        }
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        out[0].bools()?.iter_mut().zip(x.bools(0)?).for_each(|(r, &v)| *r = !v);
        Ok(())
    }

    fn cases(&self) -> Vec<Case> {
        vec![unary("both", bools(&[true, false]), bools(&[false, true]))]
    }
}
