//! `threshold`: `x`, or `alpha` where that is larger, elementwise.

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::elementwise;
use crate::ops::support::examples::{floats, ints, unary};
use crate::tensor::Data;
use crate::types::Opset;

pub(super) struct Threshold;

impl Op for Threshold {
    fn name(&self) -> &'static str {
        "threshold"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::required("alpha")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        if x.dtype(1) != x.dtype(0) || x.shape(1).iter().any(|&n| n != 1) {
            return Err(x.bad(1, format!("one number of type {}", x.dtype(0)), x.ty(1)));
        }
        elementwise::infer_unary(x)
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        match x.data(1)? {
            Data::I32(&[alpha]) => elementwise::eval_unary(x, out, |v| v, |v| v.max(alpha)),
            _ => {
                let alpha = x.f32(1)?;
                elementwise::eval_unary(x, out, |v| elementwise::max(v, alpha), |v| v)
            }
        }
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            unary("floats", floats(&[-2.0, 0.5, f32::NAN]), floats(&[-1.0, 0.5, f32::NAN])).constant("alpha", -1f32),
            unary("integers", ints(&[-2, 5]), ints(&[3, 5])).constant("alpha", 3),
        ]
    }
}
