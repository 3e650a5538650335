//! `cast`: another element type. Between floating types nothing is rounded (see the crate's page on numbers); floats turn
//! into integers by truncation, saturating at the type's ends, NaN to 0; integers into narrower ones by wrapping.

use smallvec::smallvec;

use crate::case::Case;
use crate::layout::Layout;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::tensor::{Data, DataMut, Tensor};
use crate::types::{DType, Opset};

pub(super) struct Cast;

const X: usize = 0;
const DTYPE: usize = 1;

/// Keeps of an integer what its declared width can hold.
fn wrap(dtype: DType, v: i32) -> i32 {
    match dtype {
        DType::I8 => i32::from(v as i8),
        DType::U8 => i32::from(v as u8),
        DType::I16 => i32::from(v as i16),
        DType::U16 => i32::from(v as u16),
        _ => v,
    }
}

/// The nearest integer towards zero that the type holds.
fn truncate(dtype: DType, v: f32) -> i32 {
    match dtype {
        DType::I8 => i32::from(v as i8),
        DType::U8 => i32::from(v as u8),
        DType::I16 => i32::from(v as i16),
        DType::U16 => i32::from(v as u16),
        _ => v as i32,
    }
}

impl Op for Cast {
    fn name(&self) -> &'static str {
        "cast"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::required("dtype")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let name = x.text_or(DTYPE, "")?;
        let dtype = DType::from_name(name)
            .filter(|&d| d != DType::String)
            .ok_or_else(|| x.bad(DTYPE, "an element type", name))?;
        let mut ty = x.ty(X);
        ty.dtype = dtype;
        Ok(smallvec![ty])
    }

    fn view(&self, x: &dyn Operands, layout: &Layout) -> Option<Layout> {
        let floats = x.dtype(X).is_float() && self.infer(x).ok()?.first()?.dtype.is_float();
        floats.then(|| layout.clone())
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let to = out[0].dtype;
        match (x.data(X)?, &mut out[0].data) {
            (Data::F32(a), DataMut::F32(r)) => r.copy_from_slice(a),
            (Data::F32(a), DataMut::I32(r)) => r.iter_mut().zip(a).for_each(|(r, &v)| *r = truncate(to, v)),
            (Data::F32(a), DataMut::Bool(r)) => r.iter_mut().zip(a).for_each(|(r, &v)| *r = v != 0.0),
            (Data::I32(a), DataMut::F32(r)) => r.iter_mut().zip(a).for_each(|(r, &v)| *r = v as f32),
            (Data::I32(a), DataMut::I32(r)) => r.iter_mut().zip(a).for_each(|(r, &v)| *r = wrap(to, v)),
            (Data::I32(a), DataMut::Bool(r)) => r.iter_mut().zip(a).for_each(|(r, &v)| *r = v != 0),
            (Data::Bool(a), DataMut::F32(r)) => r.iter_mut().zip(a).for_each(|(r, &v)| *r = f32::from(u8::from(v))),
            (Data::Bool(a), DataMut::I32(r)) => r.iter_mut().zip(a).for_each(|(r, &v)| *r = i32::from(v)),
            (Data::Bool(a), DataMut::Bool(r)) => r.copy_from_slice(a),
        }
        Ok(())
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            Case::new("floats truncate and saturate")
                .input("x", Tensor::floats(DType::F32, &[4], &[1.9, -1.9, 3e9, f32::NAN]))
                .constant("dtype", "int32")
                .expect(Tensor::ints(DType::I32, &[4], &[1, -1, i32::MAX, 0])),
            Case::new("a half float keeps what single precision holds")
                .input("x", Tensor::ints(DType::I32, &[1], &[4097]))
                .constant("dtype", "fp16")
                .expect(Tensor::floats(DType::F16, &[1], &[4097.0])),
            Case::new("integers wrap into narrower ones")
                .input("x", Tensor::ints(DType::I32, &[2], &[70_000, -1]))
                .constant("dtype", "uint16")
                .expect(Tensor::ints(DType::U16, &[2], &[4464, 65_535])),
        ]
    }
}
