//! `write_state`: a state takes a new content. It has no result.
//!
//! Executors keep the states; what is evaluated here is the plain copy.

use crate::case::Case;
use crate::op::{Effect, Op, OpError, Operands, Out, Param, Results};
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct WriteState;

impl Op for WriteState {
    fn name(&self) -> &'static str {
        "write_state"
    }

    fn since(&self) -> Opset {
        Opset::CoreML8
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("input"), Param::required("data")] }
    }

    fn effect(&self) -> Effect {
        Effect::WriteState
    }

    fn results(&self, _x: &dyn Operands) -> usize {
        0
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        if x.ty(0) != x.ty(1) {
            return Err(x.bad(1, format!("the state's type {}", x.ty(0)), x.ty(1)));
        }
        Ok(Results::new())
    }

    fn eval(&self, _x: &dyn Operands, _out: &mut [Out<'_>]) -> Result<(), OpError> {
        Ok(())
    }

    fn cases(&self) -> Vec<Case> {
        let content = Tensor::floats(DType::F16, &[2], &[1.0, 2.0]);
        vec![Case::new("no result").input("input", content.clone()).input("data", content)]
    }
}
