//! `fill`: a tensor of shape `shape` whose elements are all `value`; without it, `fp32` zeros.

use smallvec::smallvec;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::{dims, filling};
use crate::tensor::Tensor;
use crate::types::{DType, Opset, Shape, StaticType};

pub(super) struct Fill;

const SHAPE: usize = 0;
const VALUE: usize = 1;

impl Op for Fill {
    fn name(&self) -> &'static str {
        "fill"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("shape"), Param::optional("value")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let dtype = filling::dtype(x, VALUE)?;
        let shape = x.i32s(SHAPE)?.iter().map(|&n| dims::extent(x, SHAPE, n)).collect::<Result<Shape, _>>()?;
        Ok(smallvec![StaticType { dtype, shape }])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        filling::fill(x, VALUE, &mut out[0])
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            Case::new("without value, zeros").constant("shape", [2, 1]).expect(Tensor::floats(
                DType::F32,
                &[2, 1],
                &[0.0, 0.0],
            )),
            Case::new("integers, the shape known at run time")
                .input("shape", Tensor::ints(DType::I32, &[1], &[3]))
                .constant("value", 7)
                .expect(Tensor::ints(DType::I32, &[3], &[7, 7, 7])),
            Case::new("truth values")
                .constant("shape", [2])
                .constant("value", true)
                .expect(Tensor::bools(&[2], &[true, true])),
        ]
    }
}
