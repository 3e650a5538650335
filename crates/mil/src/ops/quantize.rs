//! `quantize`: `input / scale` rounded to the nearest integer (halves to the even one), plus `zero_point` (0 if left
//! out), held within `output_dtype`: `int8` or `uint8`. `scale` and `zero_point` are one number each, or one for each
//! index along `axis`.

use smallvec::smallvec;

use crate::case::Case;
use crate::constant::Const;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{floats, shaped};
use crate::ops::support::{affine, elementwise};
use crate::tensor::Tensor;
use crate::types::{DType, Opset, StaticType};

pub(super) struct Quantize;

const AFFINE: affine::Affine = affine::Affine { zero_point: 1, scale: 2, axis: 3 };
const OUTPUT_DTYPE: usize = 4;

/// The output's element type, and its smallest and largest number.
fn range(x: &dyn Operands) -> Result<(DType, (f32, f32)), OpError> {
    match x.text_or(OUTPUT_DTYPE, "")? {
        "int8" => Ok((DType::I8, (-128.0, 127.0))),
        "uint8" => Ok((DType::U8, (0.0, 255.0))),
        other => Err(x.bad(OUTPUT_DTYPE, "int8 or uint8", other)),
    }
}

impl Op for Quantize {
    fn name(&self) -> &'static str {
        "quantize"
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
                Param::required("output_dtype"),
            ]
        }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        elementwise::expect_float(x, 0)?;
        AFFINE.check(x)?;
        let (dtype, _) = range(x)?;
        if x.has(AFFINE.zero_point) && x.dtype(AFFINE.zero_point) != dtype {
            return Err(x.bad(AFFINE.zero_point, format!("the output's type {dtype}"), x.dtype(AFFINE.zero_point)));
        }
        Ok(smallvec![StaticType::new(dtype, x.shape(0))])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let (data, (_, (least, most))) = (x.f32s(0)?, range(x)?);
        let out = out[0].i32s()?;
        AFFINE.for_each(x, |scale, zero, run| {
            for (r, &v) in out[run.clone()].iter_mut().zip(&data[run]) {
                *r = ((v / scale).round_ties_even() + zero).clamp(least, most) as i32;
            }
        })
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            Case::new("vectors along an axis")
                .input("input", shaped(&[2, 3], &[0.25, -0.25, 0.75, 100.0, -300.0, 1.0]))
                .constant("zero_point", Const::ints(DType::I8, &[2], &[1, -3]))
                .constant("scale", Const::floats(DType::F32, &[2], &[0.5, 2.0]))
                .constant("axis", 0)
                .constant("output_dtype", "int8")
                .expect(Tensor::ints(DType::I8, &[2, 3], &[1, 1, 3, 47, -128, -3])),
            Case::new("one scale, no zero point")
                .input("input", floats(&[-1.0, 0.5, 1.5, 2.5, 300.0]))
                .constant("scale", 1f32)
                .constant("output_dtype", "uint8")
                .expect(Tensor::ints(DType::U8, &[5], &[0, 0, 2, 2, 255])),
        ]
    }
}
