//! `constexpr_affine_dequantize`: `scale · (quantized_data - zero_point)`. `scale` and `zero_point` are one number
//! each, or one for each index along `axis`. The result has the element type of `scale`.

use std::sync::Arc;

use smallvec::smallvec;

use crate::case::Case;
use crate::compressed;
use crate::constant::Const;
use crate::lower::LowerOperands;
use crate::op::{Op, OpError, Operands, Out, Param, Results, normalize_axis};
use crate::ops::support::affine;
use crate::ops::support::examples::{floats, shaped};
use crate::packed::Packed;
use crate::tensor::Tensor;
use crate::types::{DType, Opset, StaticType};

pub(super) struct ConstexprAffineDequantize;

const AFFINE: affine::Affine = affine::Affine { scale: 2, zero_point: 1, axis: 3 };

impl Op for ConstexprAffineDequantize {
    fn name(&self) -> &'static str {
        "constexpr_affine_dequantize"
    }

    fn since(&self) -> Opset {
        Opset::CoreML6
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::required("quantized_data"),
                Param::required("zero_point"),
                Param::required("scale"),
                Param::required("axis"),
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

    fn compressed(&self, x: &dyn LowerOperands) -> Option<Packed> {
        let data = compressed::stored(x, 0)?;
        let (scale, zero) = (compressed::values(x, AFFINE.scale)?, compressed::values(x, AFFINE.zero_point)?);
        let mut blocks = vec![1; data.ty.shape.len()];
        let count = scale.len().max(zero.len());
        if count > 1 {
            let axis = compressed::values(x, AFFINE.axis)?[0] as i32;
            let axis = normalize_axis(axis, blocks.len())?;
            blocks[axis] = count;
        }
        let each = |v: Vec<f32>| if v.len() == 1 { vec![v[0]; count] } else { v };
        let dtype = x.ty_at(AFFINE.scale, 0).0;
        let scaled = compressed::Scaled::new(dtype, data, &blocks, each(scale).into(), Some(each(zero).into()))?;
        Some(Packed::Compressed(Arc::new(scaled)))
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            Case::new("vectors along a middle axis")
                .constant("quantized_data", Const::ints(DType::I8, &[1, 3, 2], &[0, 1, 2, -3, 127, -128]))
                .constant("zero_point", Const::ints(DType::I8, &[3], &[1, 2, 3]))
                .constant("scale", Const::floats(DType::F16, &[3], &[0.5, 1.0, 2.0]))
                .constant("axis", 1)
                .expect(Tensor::floats(DType::F16, &[1, 3, 2], &[-0.5, 0.0, 0.0, -5.0, 248.0, -262.0])),
            Case::new("a vector of scales, one floating zero point, a negative axis")
                .constant("quantized_data", Const::ints(DType::U8, &[1, 3, 2], &[0, 1, 2, 253, 127, 128]))
                .constant("zero_point", 3.5f32)
                .constant("scale", Const::floats(DType::F32, &[2], &[0.5, 2.0]))
                .constant("axis", -1)
                .expect(shaped(&[1, 3, 2], &[-1.75, -5.0, -0.75, 499.0, 61.75, 249.0])),
            Case::new("one number each")
                .constant("quantized_data", Const::ints(DType::U8, &[2], &[0, 255]))
                .constant("zero_point", Const::ints(DType::U8, &[], &[128]))
                .constant("scale", 0.5f32)
                .constant("axis", 0)
                .expect(floats(&[-64.0, 63.5])),
        ]
    }
}
