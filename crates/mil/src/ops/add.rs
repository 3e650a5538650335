//! `add`: the sum of two tensors, elementwise with broadcasting. Integers wrap.

use crate::case::Case;
use crate::lower::{Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::{elementwise, spread};
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct Add;

impl Op for Add {
    fn name(&self) -> &'static str {
        "add"
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
        elementwise::eval_binary(x, out, |a, b| a + b, i32::wrapping_add)
    }

    fn lower(&self, x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        spread::pairs(x, |a, b| a + b)
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            Case::new("broadcasts along both operands")
                .input("x", Tensor::floats(DType::F32, &[2, 1], &[1.0, 2.0]))
                .input("y", Tensor::floats(DType::F32, &[3], &[10.0, 20.0, 30.0]))
                .expect(Tensor::floats(DType::F32, &[2, 3], &[11.0, 21.0, 31.0, 12.0, 22.0, 32.0])),
            Case::new("integers wrap")
                .input("x", Tensor::ints(DType::I32, &[2], &[i32::MAX, 1]))
                .constant("y", 1)
                .expect(Tensor::ints(DType::I32, &[2], &[i32::MIN, 2])),
        ]
    }
}
