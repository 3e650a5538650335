//! `less`: whether one tensor is less than another, elementwise with broadcasting. Nothing compares with what is not a
//! number.

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::elementwise;
use crate::ops::support::examples::{binary, bools, floats, ints};
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct Less;

impl Op for Less {
    fn name(&self) -> &'static str {
        "less"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::required("y")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        elementwise::infer_comparison(x)
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        elementwise::eval_comparison(x, out, |a, b| a < b, |a, b| a < b)
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            binary(
                "floats",
                floats(&[1.0, 2.0, 3.0, f32::NAN]),
                floats(&[2.0, 2.0, 2.0, f32::NAN]),
                bools(&[true, false, false, false]),
            ),
            binary(
                "integers, broadcast",
                ints(&[i32::MIN, 0, 1]),
                Tensor::ints(DType::I32, &[1, 1], &[0]),
                Tensor::bools(&[1, 3], &[true, false, false]),
            ),
        ]
    }
}
