//! `constexpr_sparse_to_dense`: a tensor of zeros but where `mask` keeps an element; those are `nonzero_data`, in
//! row-major order. With `shape` (iOS 16), `mask` holds one bit for each element of the result, packed from the least
//! significant up; without it (iOS 18), it is a `uint1` tensor of the result's shape.

use smallvec::smallvec;

use crate::case::Case;
use crate::constant::Const;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{floats, shaped};
use crate::ops::support::{bits, dims, sparse};
use crate::tensor::{Data, DataMut, Tensor};
use crate::types::{DType, Opset, Shape, StaticType};

pub(super) struct ConstexprSparseToDense;

const DATA: usize = 0;
const MASK: usize = 1;
const SHAPE: usize = 2;

impl Op for ConstexprSparseToDense {
    fn name(&self) -> &'static str {
        "constexpr_sparse_to_dense"
    }

    fn since(&self) -> Opset {
        Opset::CoreML6
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("nonzero_data"), Param::required("mask"), Param::optional("shape")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let dtype = x.dtype(DATA);
        if !x.has(SHAPE) {
            sparse::check(x, MASK, DATA)?;
            return Ok(smallvec![StaticType::new(dtype, x.shape(MASK))]);
        }
        let shape: Shape = x.i32s(SHAPE)?.iter().map(|&n| dims::extent(x, SHAPE, n)).collect::<Result<_, _>>()?;
        let (n, kept) = (dims::product(&shape)?, sparse::vector(x, DATA)?);
        if x.dtype(MASK) != DType::U8 || sparse::vector(x, MASK)? != n.div_ceil(8) {
            return Err(x.bad(MASK, format!("uint8 that pack a bit for each element of shape {shape:?}"), x.ty(MASK)));
        }
        if let Ok(mask) = x.i32s(MASK) {
            sparse::expect_count(x, DATA, kept, (0..n).filter(|&i| bits::field(mask, i, 1) == 1).count())?;
        }
        Ok(smallvec![StaticType { dtype, shape }])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let mask = x.i32s(MASK)?;
        let packed = x.has(SHAPE);
        let keeps = |i| if packed { bits::field(mask, i, 1) == 1 } else { mask[i] != 0 };
        match (x.data(DATA)?, &mut out[0].data) {
            (Data::F32(data), DataMut::F32(r)) => sparse::scatter(keeps, data, r),
            (Data::I32(data), DataMut::I32(r)) => sparse::scatter(keeps, data, r),
            _ => Err(dims::class_mismatch()),
        }
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            Case::new("iOS 16: packed bits")
                .constant("nonzero_data", Const::floats(DType::F16, &[3], &[1.0, 2.0, 3.0]))
                .constant("mask", Const::ints(DType::U8, &[2], &[6, 1]))
                .constant("shape", Const::ints(DType::U32, &[2], &[3, 3]))
                .expect(Tensor::floats(DType::F16, &[3, 3], &[0.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 3.0])),
            Case::new("iOS 16: integers")
                .constant("nonzero_data", Const::ints(DType::I8, &[1], &[-5]))
                .constant("mask", Const::ints(DType::U8, &[1], &[2]))
                .constant("shape", Const::ints(DType::U32, &[1], &[2]))
                .expect(Tensor::ints(DType::I8, &[2], &[0, -5])),
            Case::new("a mask")
                .input("nonzero_data", floats(&[1.0, -2.0, 3.0]))
                .constant("mask", Const::ints(DType::U1, &[2, 3], &[0, 1, 0, 1, 1, 0]))
                .expect(shaped(&[2, 3], &[0.0, 1.0, 0.0, -2.0, 3.0, 0.0])),
            Case::new("a mask over int4")
                .constant("nonzero_data", Const::ints(DType::I4, &[2], &[-8, 7]))
                .constant("mask", Const::ints(DType::U1, &[4], &[1, 0, 0, 1]))
                .expect(Tensor::ints(DType::I4, &[4], &[-8, 0, 0, 7])),
            Case::new("a mask that keeps nothing")
                .constant("nonzero_data", Const::floats(DType::F32, &[0], &[]))
                .constant("mask", Const::ints(DType::U1, &[2], &[0, 0]))
                .expect(floats(&[0.0, 0.0])),
        ]
    }
}
