//! `shape`: the extents of `x`, as a vector of integers.

use smallvec::smallvec;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::tensor::Tensor;
use crate::types::{DType, Opset, StaticType};

pub(super) struct Shape;

impl Op for Shape {
    fn name(&self) -> &'static str {
        "shape"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        Ok(smallvec![StaticType::new(DType::I32, &[x.shape(0).len()])])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        for (o, &n) in out[0].i32s()?.iter_mut().zip(x.shape(0)) {
            *o = i32::try_from(n).map_err(|_| x.bad(0, "extents that fit 32 bits", n))?;
        }
        Ok(())
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            Case::new("of a matrix").input("x", Tensor::floats(DType::F16, &[2, 3], &[0.0; 6])).expect(Tensor::ints(
                DType::I32,
                &[2],
                &[2, 3],
            )),
            Case::new("a scalar has none").input("x", Tensor::bools(&[], &[true])).expect(Tensor::ints(
                DType::I32,
                &[0],
                &[],
            )),
        ]
    }
}
