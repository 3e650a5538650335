//! `constexpr_blockwise_shift_scale`: `scale · (data - offset)`. The extents of `scale` divide those of `data`: an
//! element at position p of an axis takes the scale at p ÷ (extent of `data` ÷ extent of `scale`). `offset` is of the
//! shape of `scale`, and 0 if it is left out. The result has the element type of `scale`.

use std::sync::Arc;

use smallvec::smallvec;

use crate::case::Case;
use crate::compressed;
use crate::constant::Const;
use crate::lower::LowerOperands;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::shaped;
use crate::ops::support::{blocks, dims, elementwise};
use crate::packed::Packed;
use crate::tensor::{Data, Tensor};
use crate::types::{DType, Opset, StaticType};

pub(super) struct ConstexprBlockwiseShiftScale;

const DATA: usize = 0;
const SCALE: usize = 1;
const OFFSET: usize = 2;

impl Op for ConstexprBlockwiseShiftScale {
    fn name(&self) -> &'static str {
        "constexpr_blockwise_shift_scale"
    }

    fn since(&self) -> Opset {
        Opset::CoreML8
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("data"), Param::required("scale"), Param::optional("offset")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let (dtype, shape) = x.ty_at(DATA, 0);
        elementwise::expect_float(x, SCALE)?;
        if !dtype.is_int() && !dtype.is_float() {
            return Err(x.bad(DATA, "a tensor of numbers", dtype));
        }
        blocks::check(x, SCALE, shape, x.shape(SCALE))?;
        blocks::expect_offset(x, OFFSET, SCALE, dtype)?;
        Ok(smallvec![StaticType::new(x.dtype(SCALE), shape)])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let (scale, offset) = (x.f32s(SCALE)?, blocks::Offsets::new(x, OFFSET)?);
        let blocks = blocks::Blocks::new(x.shape(DATA), x.shape(SCALE));
        let out = out[0].f32s()?;
        match x.data(DATA)? {
            Data::F32(data) => blocks.runs(|block, start, len| {
                let (scale, offset, run) = (scale[block], offset.of(block), start..start + len);
                out[run.clone()].iter_mut().zip(&data[run]).for_each(|(r, &q)| *r = scale * (q - offset));
            }),
            Data::I32(data) => blocks.runs(|block, start, len| {
                let (scale, offset, run) = (scale[block], offset.of(block), start..start + len);
                out[run.clone()].iter_mut().zip(&data[run]).for_each(|(r, &q)| *r = scale * (q as f32 - offset));
            }),
            Data::Bool(_) => return Err(dims::class_mismatch()),
        }
        Ok(())
    }

    fn compressed(&self, x: &dyn LowerOperands) -> Option<Packed> {
        let offset = if x.count(OFFSET) > 0 { Some(compressed::numbers(x, OFFSET)?) } else { None };
        let (dtype, blocks) = x.ty_at(SCALE, 0);
        let scaled = compressed::Scaled::new(
            dtype,
            compressed::stored(x, DATA)?,
            blocks,
            compressed::numbers(x, SCALE)?,
            offset,
        )?;
        Some(Packed::Compressed(Arc::new(scaled)))
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            Case::new("blocks of int4 along the last axis, with offsets")
                .constant("data", Const::ints(DType::I4, &[2, 4], &[-8, 7, 1, 0, 3, -2, 5, 6]))
                .constant("scale", Const::floats(DType::F32, &[2, 2], &[0.5, 2.0, 1.0, 0.25]))
                .constant("offset", Const::ints(DType::I4, &[2, 2], &[1, 0, -8, 2]))
                .expect(shaped(&[2, 4], &[-4.5, 3.0, 2.0, 0.0, 11.0, 6.0, 0.75, 1.0])),
            Case::new("a scale for each index of the last axis, as half floats")
                .constant("data", Const::ints(DType::U8, &[2, 3, 2], &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]))
                .constant("scale", Const::floats(DType::F16, &[1, 1, 2], &[1.0, 10.0]))
                .expect(Tensor::floats(
                    DType::F16,
                    &[2, 3, 2],
                    &[0.0, 10.0, 2.0, 30.0, 4.0, 50.0, 6.0, 70.0, 8.0, 90.0, 10.0, 110.0],
                )),
            Case::new("blocks along several axes")
                .constant(
                    "data",
                    Const::ints(DType::U4, &[4, 4], &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]),
                )
                .constant("scale", Const::floats(DType::F32, &[2, 2], &[1.0, 2.0, 3.0, 4.0]))
                .expect(shaped(
                    &[4, 4],
                    &[0.0, 1.0, 4.0, 6.0, 4.0, 5.0, 12.0, 14.0, 24.0, 27.0, 40.0, 44.0, 36.0, 39.0, 56.0, 60.0],
                )),
            Case::new("floating data and offsets, one scale for each channel of a convolution")
                .input("data", shaped(&[2, 2, 1, 1], &[1.0, 2.0, 3.0, 4.0]))
                .input("scale", shaped(&[2, 1, 1, 1], &[2.0, -1.0]))
                .input("offset", shaped(&[2, 1, 1, 1], &[0.5, 1.5]))
                .expect(shaped(&[2, 2, 1, 1], &[1.0, 3.0, -1.5, -2.5])),
        ]
    }
}
