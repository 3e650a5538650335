//! `constexpr_lut_to_sparse`: as `constexpr_lut_to_dense` of iOS 18, of a sparse tensor of indices. Results are the
//! mask, stretched along `vector_axis` where an index gives several elements, and the elements that it keeps.

use smallvec::smallvec;

use crate::case::Case;
use crate::constant::Const;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{floats, shaped};
use crate::ops::support::{dims, palette, sparse};
use crate::tensor::{Data, DataMut, Tensor};
use crate::types::{DType, Opset, StaticType};

pub(super) struct ConstexprLutToSparse;

const MASK: usize = 0;
const INDICES: usize = 1;
const LUT: usize = 2;
const VECTOR_AXIS: usize = 3;

/// Writes the stretched mask and what it keeps, in row-major order of the stretched tensor.
fn expand<T: Copy>(
    palette: &palette::Palette,
    mask: &[i32],
    indices: &[i32],
    lut: &[T],
    kept: &mut [i32],
    values: &mut [T],
) -> Result<(), OpError> {
    let (mut kept, mut values) = (kept.iter_mut(), values.iter_mut());
    let mut before = 0;
    for (row, keep) in mask.chunks(palette.inner.max(1)).enumerate() {
        // The same row once for each element of a vector.
        for v in 0..palette.vector {
            let mut index = indices[before..].iter();
            for (at, &keep) in (row * palette.inner..).zip(keep) {
                if let Some(r) = kept.next() {
                    *r = keep;
                }
                if keep != 0
                    && let (Some(r), Some(&i)) = (values.next(), index.next())
                {
                    *r = lut[palette.look_up(at, i)? + v];
                }
            }
        }
        before += sparse::ones(keep);
    }
    Ok(())
}

const KEEP: [i32; 24] = [1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 1, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0];

fn mask() -> Const {
    Const::ints(DType::U1, &[4, 6], &KEEP.map(i64::from))
}

fn indices() -> Const {
    Const::ints(DType::U1, &[9], &[0, 1, 1, 0, 1, 1, 0, 0, 1])
}

impl Op for ConstexprLutToSparse {
    fn name(&self) -> &'static str {
        "constexpr_lut_to_sparse"
    }

    fn since(&self) -> Opset {
        Opset::CoreML8
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::required("indices_mask"),
                Param::required("indices_nonzero_data"),
                Param::required("lut"),
                Param::optional("vector_axis"),
            ]
        }
    }

    fn results(&self, _x: &dyn Operands) -> usize {
        2
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        sparse::check(x, MASK, INDICES)?;
        let (mask, n) = (x.ty(MASK), x.shape(INDICES)[0]);
        let shape = palette::expanded(x, &mask.shape, x.dtype(INDICES), LUT, VECTOR_AXIS)?;
        let vector = x.shape(LUT).last().copied().unwrap_or(1);
        let kept = dims::product(&[n, vector])?;
        Ok(smallvec![StaticType { dtype: mask.dtype, shape }, StaticType::new(x.dtype(LUT), &[kept])])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let (mask, indices) = (x.i32s(MASK)?, x.i32s(INDICES)?);
        sparse::expect_count(x, INDICES, indices.len(), sparse::ones(mask))?;
        let palette = palette::Palette::new(x, x.shape(MASK), LUT, VECTOR_AXIS)?;
        let [kept, values] = out else {
            return Err(OpError::mismatch("two results", out.len().to_string()));
        };
        let kept = kept.i32s()?;
        match (x.data(LUT)?, &mut values.data) {
            (Data::F32(lut), DataMut::F32(r)) => expand(&palette, mask, indices, lut, kept, r),
            (Data::I32(lut), DataMut::I32(r)) => expand(&palette, mask, indices, lut, kept, r),
            _ => Err(dims::class_mismatch()),
        }
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            Case::new("one element for each index")
                .constant("indices_mask", mask())
                .constant("indices_nonzero_data", indices())
                .constant("lut", Const::floats(DType::F16, &[1, 1, 2, 1], &[2.0, 3.0]))
                .expect(Tensor::ints(DType::U1, &[4, 6], &KEEP))
                .expect(Tensor::floats(DType::F16, &[9], &[2.0, 3.0, 3.0, 2.0, 3.0, 3.0, 2.0, 2.0, 3.0])),
            Case::new("a palette for each group of rows")
                .constant("indices_mask", mask())
                .constant("indices_nonzero_data", indices())
                .input("lut", shaped(&[2, 1, 2, 1], &[2.0, 3.0, 20.0, 30.0]))
                .expect(Tensor::ints(DType::U1, &[4, 6], &KEEP))
                .expect(floats(&[2.0, 3.0, 3.0, 2.0, 3.0, 30.0, 20.0, 20.0, 30.0])),
            Case::new("vectors along the first axis")
                .constant("indices_mask", mask())
                .constant("indices_nonzero_data", indices())
                .constant("lut", Const::ints(DType::I8, &[1, 1, 2, 2], &[2, -2, 3, -3]))
                .constant("vector_axis", 0)
                .expect(Tensor::ints(
                    DType::U1,
                    &[8, 6],
                    &[
                        1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 0, 1, 1, 0, 1, 0, 0, 1,
                        1, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0,
                    ],
                ))
                .expect(Tensor::ints(
                    DType::I8,
                    &[18],
                    &[2, 3, -2, -3, 3, 2, 3, -3, -2, -3, 3, 2, 2, -3, -2, -2, 3, -3],
                )),
            Case::new("vectors along the last axis")
                .constant("indices_mask", mask())
                .constant("indices_nonzero_data", indices())
                .input("lut", shaped(&[1, 1, 2, 2], &[2.0, -2.0, 3.0, -3.0]))
                .constant("vector_axis", -1)
                .expect(Tensor::ints(
                    DType::U1,
                    &[4, 12],
                    &[
                        1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 1, 0, 0,
                        1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0,
                    ],
                ))
                .expect(floats(&[
                    2.0, -2.0, 3.0, -3.0, 3.0, -3.0, 2.0, -2.0, 3.0, -3.0, 3.0, -3.0, 2.0, -2.0, 2.0, -2.0, 3.0, -3.0,
                ])),
        ]
    }
}
