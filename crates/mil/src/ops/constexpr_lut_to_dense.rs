//! `constexpr_lut_to_dense`: numbers stored as indices into palettes. With `shape` (iOS 16), `indices` are the bits of
//! the result's indices, packed from the least significant up, and `lut` is one palette. Without it (iOS 18), `indices`
//! is a tensor of `uintN`, and `lut` has shape (groups per axis …, 2^N, vector length): an index at position p of an
//! axis looks into group p ÷ (extent ÷ groups) and gives as many consecutive elements along `vector_axis` as vectors
//! are long.

use std::sync::Arc;

use smallvec::smallvec;

use crate::case::Case;
use crate::compressed;
use crate::constant::{Const, TensorConst};
use crate::lower::LowerOperands;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{floats, shaped};
use crate::ops::support::{bits, dims, palette, sparse};
use crate::packed::Packed;
use crate::tensor::{Data, DataMut, Tensor};
use crate::types::{DType, Opset, Shape, StaticType};

pub(super) struct ConstexprLutToDense;

const INDICES: usize = 0;
const LUT: usize = 1;
const SHAPE: usize = 2;
const VECTOR_AXIS: usize = 3;

fn unpack<T: Copy>(indices: &[i32], lut: &[T], out: &mut [T]) -> Result<(), OpError> {
    let width = lut.len().ilog2() as usize;
    for (i, r) in out.iter_mut().enumerate() {
        *r = lut[bits::field(indices, i * width, width)];
    }
    Ok(())
}

fn cube() -> Const {
    Const::ints(DType::U1, &[2, 2, 2], &[0, 0, 1, 0, 1, 1, 0, 0])
}

fn vectors() -> Const {
    Const::ints(DType::I8, &[1, 1, 1, 2, 3], &[1, 2, 3, -1, -2, -3])
}

impl Op for ConstexprLutToDense {
    fn name(&self) -> &'static str {
        "constexpr_lut_to_dense"
    }

    fn since(&self) -> Opset {
        Opset::CoreML6
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::required("indices"),
                Param::required("lut"),
                Param::optional("shape"),
                Param::optional("vector_axis"),
            ]
        }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        if !x.has(SHAPE) {
            let (dtype, shape) = x.ty_at(INDICES, 0);
            let shape = palette::expanded(x, shape, dtype, LUT, VECTOR_AXIS)?;
            return Ok(smallvec![StaticType { dtype: x.dtype(LUT), shape }]);
        }
        let shape: Shape = x.i32s(SHAPE)?.iter().map(|&n| dims::extent(x, SHAPE, n)).collect::<Result<_, _>>()?;
        let (entries, bytes) = (sparse::vector(x, LUT)?, sparse::vector(x, INDICES)?);
        if !entries.is_power_of_two() || !(2..=256).contains(&entries) {
            return Err(x.bad(LUT, "2, 4, 16, 64 or 256 entries", entries));
        }
        let width = entries.ilog2() as usize;
        let bits = dims::product(&shape)?.checked_mul(width);
        if x.dtype(INDICES) != DType::U8 || bits.map(|n| n.div_ceil(8)) != Some(bytes) {
            let expected = format!("uint8 that pack {width} bits for each element of shape {shape:?}");
            return Err(x.bad(INDICES, expected, x.ty(INDICES)));
        }
        Ok(smallvec![StaticType { dtype: x.dtype(LUT), shape }])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let indices = x.i32s(INDICES)?;
        if x.has(SHAPE) {
            return match (x.data(LUT)?, &mut out[0].data) {
                (Data::F32(lut), DataMut::F32(r)) => unpack(indices, lut, r),
                (Data::I32(lut), DataMut::I32(r)) => unpack(indices, lut, r),
                _ => Err(dims::class_mismatch()),
            };
        }
        let palette = palette::Palette::new(x, x.shape(INDICES), LUT, VECTOR_AXIS)?;
        match (x.data(LUT)?, &mut out[0].data) {
            (Data::F32(lut), DataMut::F32(r)) => palette.expand(indices, lut, r),
            (Data::I32(lut), DataMut::I32(r)) => palette.expand(indices, lut, r),
            _ => Err(dims::class_mismatch()),
        }
    }

    fn compressed(&self, x: &dyn LowerOperands) -> Option<Packed> {
        let (dtype, lut) = x.ty_at(LUT, 0);
        let (stored, tables) = (compressed::stored(x, INDICES)?, compressed::values(x, LUT)?);
        let palettes = if x.count(SHAPE) > 0 {
            // The same bits, as the tensor of small integers that they are.
            let bits = tables.len().checked_ilog2()?;
            let uint = DType::ALL.into_iter().find(|d| d.name() == format!("uint{bits}"))?;
            let shape: Shape = compressed::values(x, SHAPE)?.iter().map(|&n| n as usize).collect();
            let groups = vec![1; shape.len()];
            let indices = TensorConst::new(StaticType { dtype: uint, shape }, stored.bytes).ok()?;
            compressed::Palettes::new(dtype, indices, &groups, tables)?
        } else {
            let [groups @ .., _, 1] = lut else { return None };
            compressed::Palettes::new(dtype, stored, groups, tables)?
        };
        Some(Packed::Compressed(Arc::new(palettes)))
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            Case::new("iOS 16: 2 bits")
                .constant("indices", Const::ints(DType::U8, &[2], &[108, 3]))
                .constant("lut", Const::floats(DType::F16, &[4], &[0.5, 1.5, 2.5, 3.5]))
                .constant("shape", Const::ints(DType::U32, &[1], &[5]))
                .expect(Tensor::floats(DType::F16, &[5], &[0.5, 3.5, 2.5, 1.5, 3.5])),
            Case::new("iOS 16: 6 bits cross bytes")
                .constant("indices", Const::ints(DType::U8, &[4], &[192, 31, 6, 62]))
                .input("lut", floats(&std::array::from_fn::<f32, 64, _>(|i| i as f32 * 1.5)))
                .constant("shape", Const::ints(DType::U32, &[2], &[5, 1]))
                .expect(shaped(&[5, 1], &[0.0, 94.5, 49.5, 1.5, 93.0])),
            Case::new("iOS 16: a palette of integers")
                .constant("indices", Const::ints(DType::U8, &[1], &[5]))
                .constant("lut", Const::ints(DType::I8, &[2], &[-7, 9]))
                .constant("shape", Const::ints(DType::U32, &[2], &[2, 2]))
                .expect(Tensor::ints(DType::I8, &[2, 2], &[9, -7, 9, -7])),
            Case::new("a palette for each group of rows")
                .constant("indices", Const::ints(DType::U2, &[6, 2], &[2, 3, 3, 0, 1, 0, 3, 0, 2, 1, 0, 3]))
                .constant(
                    "lut",
                    Const::floats(DType::F16, &[2, 1, 4, 1], &[1.0, 5.0, 9.0, 13.0, 2.0, 10.0, 18.0, 26.0]),
                )
                .expect(Tensor::floats(
                    DType::F16,
                    &[6, 2],
                    &[9.0, 13.0, 13.0, 1.0, 5.0, 1.0, 26.0, 2.0, 18.0, 10.0, 2.0, 26.0],
                )),
            Case::new("a palette for each group of columns")
                .constant("indices", Const::ints(DType::U1, &[2, 4], &[0, 1, 1, 0, 1, 1, 0, 0]))
                .input("lut", shaped(&[1, 2, 2, 1], &[1.0, 2.0, 3.0, 4.0]))
                .expect(shaped(&[2, 4], &[1.0, 2.0, 4.0, 3.0, 2.0, 2.0, 3.0, 3.0])),
            Case::new("3 bits")
                .constant("indices", Const::ints(DType::U3, &[9], &[0, 7, 1, 6, 2, 5, 3, 4, 7]))
                .input("lut", shaped(&[1, 8, 1], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]))
                .expect(floats(&[0.0, 7.0, 1.0, 6.0, 2.0, 5.0, 3.0, 4.0, 7.0])),
            Case::new("vectors along the first axis")
                .constant("indices", cube())
                .constant("lut", vectors())
                .constant("vector_axis", 0)
                .expect(Tensor::ints(
                    DType::I8,
                    &[6, 2, 2],
                    &[1, 1, -1, 1, 2, 2, -2, 2, 3, 3, -3, 3, -1, -1, 1, 1, -2, -2, 2, 2, -3, -3, 3, 3],
                )),
            Case::new("vectors along the middle axis")
                .constant("indices", cube())
                .constant("lut", vectors())
                .constant("vector_axis", 1)
                .expect(Tensor::ints(
                    DType::I8,
                    &[2, 6, 2],
                    &[1, 1, 2, 2, 3, 3, -1, 1, -2, 2, -3, 3, -1, -1, -2, -2, -3, -3, 1, 1, 2, 2, 3, 3],
                )),
            Case::new("vectors along the last axis, counted from the end")
                .constant("indices", cube())
                .constant("lut", vectors())
                .constant("vector_axis", -1)
                .expect(Tensor::ints(
                    DType::I8,
                    &[2, 2, 6],
                    &[1, 2, 3, 1, 2, 3, -1, -2, -3, 1, 2, 3, -1, -2, -3, -1, -2, -3, 1, 2, 3, 1, 2, 3],
                )),
            Case::new("vectors out of groups along two axes")
                .constant("indices", Const::ints(DType::U1, &[2, 2], &[0, 1, 1, 0]))
                .input("lut", shaped(&[2, 2, 2, 2], &std::array::from_fn::<f32, 16, _>(|i| i as f32 + 1.0)))
                .constant("vector_axis", 0)
                .expect(shaped(&[4, 2], &[1.0, 7.0, 2.0, 8.0, 11.0, 13.0, 12.0, 14.0])),
        ]
    }
}
