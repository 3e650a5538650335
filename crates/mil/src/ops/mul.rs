//! `mul`: the product of two tensors, elementwise with broadcasting. Integers wrap.

use crate::case::Case;
use crate::lower::{Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{binary, floats, ints, shaped};
use crate::ops::support::{elementwise, spread};
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct Mul;

impl Op for Mul {
    fn name(&self) -> &'static str {
        "mul"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::required("y")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        elementwise::infer_binary(x)
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        elementwise::eval_binary(x, out, |a, b| a * b, i32::wrapping_mul)
    }

    fn lower(&self, x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        spread::pairs(x, |a, b| a * b)
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            binary(
                "broadcasts a row and a column",
                shaped(&[2, 1], &[2.0, -3.0]),
                floats(&[1.0, 0.5, 0.0]),
                shaped(&[2, 3], &[2.0, 1.0, 0.0, -3.0, -1.5, -0.0]),
            ),
            Case::new("half floats keep what single precision holds")
                .input("x", Tensor::floats(DType::F16, &[1], &[60_000.0]))
                .input("y", Tensor::floats(DType::F16, &[1], &[60_000.0]))
                .expect(Tensor::floats(DType::F16, &[1], &[3.6e9])),
            binary("integers wrap", ints(&[1 << 30, -7]), ints(&[4, 6]), ints(&[0, -42])),
            binary("no elements", shaped(&[0, 2], &[]), floats(&[1.0, 2.0]), shaped(&[0, 2], &[])),
        ]
    }
}
