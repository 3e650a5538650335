//! `dequantize`: `scale · (input - zero_point)`. `scale` and `zero_point` (0 if left out) are one number each, or one
//! for each index along `axis`. The result has the element type of `scale`.

use smallvec::smallvec;

use crate::case::Case;
use crate::constant::Const;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::affine;
use crate::ops::support::examples::floats;
use crate::tensor::Tensor;
use crate::types::{DType, Opset, StaticType};

pub(super) struct Dequantize;

const AFFINE: affine::Affine = affine::Affine { zero_point: 1, scale: 2, axis: 3 };

impl Op for Dequantize {
    fn name(&self) -> &'static str {
        "dequantize"
    }

    fn since(&self) -> Opset {
        Opset::CoreML7
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::required("input"),
                Param::optional("zero_point"),
                Param::required("scale"),
                Param::optional("axis"),
            ]
        }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        affine::expect_quantized(x)?;
        AFFINE.check(x)?;
        Ok(smallvec![StaticType::new(x.dtype(AFFINE.scale), x.shape(0))])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        AFFINE.dequantize(x, out[0].f32s()?)
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            Case::new("one scale")
                .input("input", Tensor::ints(DType::I8, &[2], &[-128, 127]))
                .constant("scale", 0.5f32)
                .expect(floats(&[-64.0, 63.5])),
            Case::new("vectors along an axis")
                .input("input", Tensor::ints(DType::U8, &[2, 2], &[0, 255, 10, 20]))
                .constant("zero_point", Const::ints(DType::U8, &[2], &[128, 10]))
                .constant("scale", Const::floats(DType::F16, &[2], &[1.0, 0.5]))
                .constant("axis", -2)
                .expect(Tensor::floats(DType::F16, &[2, 2], &[-128.0, 127.0, 0.0, 5.0])),
        ]
    }
}
