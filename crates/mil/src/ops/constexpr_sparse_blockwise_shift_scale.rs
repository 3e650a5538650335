//! `constexpr_sparse_blockwise_shift_scale`: as `constexpr_blockwise_shift_scale`, of a sparse tensor. Results are the
//! mask as it was, and `scale · (data - offset)` of the elements that it keeps.

use smallvec::smallvec;

use crate::case::Case;
use crate::constant::Const;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::floats;
use crate::ops::support::{blocks, dims, elementwise, sparse};
use crate::tensor::{Data, Tensor};
use crate::types::{DType, Opset, StaticType};

pub(super) struct ConstexprSparseBlockwiseShiftScale;

const MASK: usize = 0;
const DATA: usize = 1;
const SCALE: usize = 2;
const OFFSET: usize = 3;

const KEEP: [i32; 16] = [1, 1, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 0, 0];

fn mask() -> Const {
    Const::ints(DType::U1, &[4, 4], &KEEP.map(i64::from))
}

fn kept() -> Tensor {
    Tensor::ints(DType::U1, &[4, 4], &KEEP)
}

impl Op for ConstexprSparseBlockwiseShiftScale {
    fn name(&self) -> &'static str {
        "constexpr_sparse_blockwise_shift_scale"
    }

    fn since(&self) -> Opset {
        Opset::CoreML8
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::required("data_mask"),
                Param::required("nonzero_data"),
                Param::required("scale"),
                Param::optional("offset"),
            ]
        }
    }

    fn results(&self, _x: &dyn Operands) -> usize {
        2
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        sparse::check(x, MASK, DATA)?;
        elementwise::expect_float(x, SCALE)?;
        blocks::check(x, SCALE, x.shape(MASK), x.shape(SCALE))?;
        blocks::expect_offset(x, OFFSET, SCALE, x.dtype(DATA))?;
        Ok(smallvec![x.ty(MASK), StaticType::new(x.dtype(SCALE), x.shape(DATA))])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let (mask, scale, offset) = (x.i32s(MASK)?, x.f32s(SCALE)?, blocks::Offsets::new(x, OFFSET)?);
        sparse::expect_count(x, DATA, x.shape(DATA)[0], sparse::ones(mask))?;
        let blocks = blocks::Blocks::new(x.shape(MASK), x.shape(SCALE));
        let [kept, values] = out else {
            return Err(OpError::mismatch("two results", out.len().to_string()));
        };
        kept.i32s()?.copy_from_slice(mask);
        let places = mask.iter().enumerate().filter(|&(_, &keep)| keep != 0).map(|(at, _)| blocks.of(at));
        match x.data(DATA)? {
            Data::F32(data) => values.f32s()?.iter_mut().zip(data).zip(places).for_each(|((r, &q), block)| {
                *r = scale[block] * (q - offset.of(block));
            }),
            Data::I32(data) => values.f32s()?.iter_mut().zip(data).zip(places).for_each(|((r, &q), block)| {
                *r = scale[block] * (q as f32 - offset.of(block));
            }),
            Data::Bool(_) => return Err(dims::class_mismatch()),
        }
        Ok(())
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            Case::new("a scale for each column")
                .constant("data_mask", mask())
                .constant("nonzero_data", Const::ints(DType::I8, &[9], &[10, 11, 3, 4, 5, 6, 7, 8, 9]))
                .constant("scale", Const::floats(DType::F32, &[1, 4], &[0.1, 0.2, 0.3, 0.4]))
                .constant("offset", Const::ints(DType::I8, &[1, 4], &[1, 2, 3, 4]))
                .expect(kept())
                .expect(floats(&[0.9, 1.8, 0.2, 0.4, 0.6, 0.9, 1.2, 0.7, 1.4])),
            Case::new("a scale for each block, as half floats")
                .constant("data_mask", mask())
                .constant("nonzero_data", Const::ints(DType::U4, &[9], &[10, 11, 3, 4, 5, 6, 7, 8, 9]))
                .constant("scale", Const::floats(DType::F16, &[2, 2], &[1.0, 2.0, 0.5, 4.0]))
                .expect(kept())
                .expect(Tensor::floats(DType::F16, &[9], &[10.0, 11.0, 3.0, 4.0, 10.0, 24.0, 28.0, 4.0, 4.5])),
        ]
    }
}
