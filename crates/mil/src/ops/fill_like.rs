//! `fill_like`: a tensor of the shape of `ref_tensor` whose elements are all `value`; without it, `fp32` zeros.

use smallvec::smallvec;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::filling;
use crate::tensor::Tensor;
use crate::types::{DType, Opset, StaticType};

pub(super) struct FillLike;

const REF_TENSOR: usize = 0;
const VALUE: usize = 1;

impl Op for FillLike {
    fn name(&self) -> &'static str {
        "fill_like"
    }

    fn since(&self) -> Opset {
        Opset::CoreML6
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("ref_tensor"), Param::optional("value")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        Ok(smallvec![StaticType::new(filling::dtype(x, VALUE)?, x.shape(REF_TENSOR))])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        filling::fill(x, VALUE, &mut out[0])
    }

    fn cases(&self) -> Vec<Case> {
        let like = Tensor::bools(&[2, 1], &[true, false]);
        vec![
            Case::new("without value, zeros").input("ref_tensor", like.clone()).expect(Tensor::floats(
                DType::F32,
                &[2, 1],
                &[0.0, 0.0],
            )),
            Case::new("the type is the value's").input("ref_tensor", like).constant("value", -3).expect(Tensor::ints(
                DType::I32,
                &[2, 1],
                &[-3, -3],
            )),
        ]
    }
}
