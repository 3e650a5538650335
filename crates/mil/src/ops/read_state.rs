//! `read_state`: a copy of a state's present content.
//!
//! Executors keep the states; what is evaluated here is the plain copy.

use crate::case::Case;
use crate::op::{Effect, Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::dims;
use crate::tensor::Tensor;
use crate::types::{DType, Opset};
use smallvec::smallvec;

pub(super) struct ReadState;

impl Op for ReadState {
    fn name(&self) -> &'static str {
        "read_state"
    }

    fn since(&self) -> Opset {
        Opset::CoreML8
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("input")] }
    }

    fn effect(&self) -> Effect {
        Effect::ReadState
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        Ok(smallvec![dims::numbers(x, 0)?])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        out[0].f32s()?.copy_from_slice(x.f32s(0)?);
        Ok(())
    }

    fn cases(&self) -> Vec<Case> {
        let content = Tensor::floats(DType::F16, &[2], &[1.0, 2.0]);
        vec![Case::new("the content").input("input", content.clone()).expect(content)]
    }
}
