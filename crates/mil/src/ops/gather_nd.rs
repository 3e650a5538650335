//! `gather_nd`: the slices of `x` that the rows of `indices` (its last axis) name, behind `batch_dims` leading axes that both
//! share. Indices are read as in `gather`.

use smallvec::smallvec;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::dims;
use crate::ops::support::picking::{Indices, Rows, expect_ints};
use crate::tensor::{Data, DataMut, Tensor};
use crate::types::{DType, Opset};

pub(super) struct GatherNd;

const X: usize = 0;
const INDICES: usize = 1;
const BATCH_DIMS: usize = 2;
const VALIDATE_INDICES: usize = 3;

impl Op for GatherNd {
    fn name(&self) -> &'static str {
        "gather_nd"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::required("x"),
                Param::required("indices"),
                Param::optional("batch_dims"),
                Param::optional("validate_indices"),
            ]
        }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let mut ty = dims::numbers(x, X)?;
        expect_ints(x, INDICES)?;
        let rows = Rows::new(&ty.shape, x.shape(INDICES), x.i32_or(BATCH_DIMS, 0)?)?;
        ty.shape = rows.result(&ty.shape, x.shape(INDICES));
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        if out[0].shape.contains(&0) {
            return Ok(());
        }
        match (x.data(X)?, &mut out[0].data) {
            (Data::F32(a), DataMut::F32(r)) => take(x, a, r),
            (Data::I32(a), DataMut::I32(r)) => take(x, a, r),
            (Data::Bool(a), DataMut::Bool(r)) => take(x, a, r),
            _ => Err(dims::class_mismatch()),
        }
    }

    fn cases(&self) -> Vec<Case> {
        let values: Vec<f32> = (0..12).map(|v| v as f32).collect();
        let x = Tensor::floats(DType::F16, &[2, 3, 2], &values);
        let f = |shape: &[usize], v: &[f32]| Tensor::floats(DType::F16, shape, v);
        vec![
            Case::new("elements")
                .input("x", x.clone())
                .input("indices", Tensor::ints(DType::I32, &[2, 3], &[0, 0, 1, 1, 2, 0]))
                .expect(f(&[2], &[1.0, 10.0])),
            Case::new("slices, one index negative")
                .input("x", x.clone())
                .input("indices", Tensor::ints(DType::I16, &[2, 1, 2], &[1, 0, 0, -1]))
                .constant("batch_dims", 0)
                .expect(f(&[2, 1, 2], &[6.0, 7.0, 4.0, 5.0])),
            Case::new("batches have indices of their own")
                .input("x", x)
                .input("indices", Tensor::ints(DType::I32, &[2, 1, 1], &[2, 0]))
                .constant("batch_dims", 1)
                .constant("validate_indices", true)
                .expect(f(&[2, 1, 2], &[4.0, 5.0, 6.0, 7.0])),
        ]
    }
}

fn take<T: Copy>(x: &dyn Operands, a: &[T], r: &mut [T]) -> Result<(), OpError> {
    let (shape, indices) = (x.shape(X), x.shape(INDICES));
    let rows = Rows::new(shape, indices, x.i32_or(BATCH_DIMS, 0)?)?;
    let own = &indices[..indices.len() - 1];
    let slice = r.len() / dims::product(own)?;
    let mut to = r.chunks_exact_mut(slice);
    rows.each(shape, own, &Indices::new(x, INDICES, VALIDATE_INDICES)?, |at| {
        if let Some(to) = to.next() {
            to.copy_from_slice(&a[at..at + slice]);
        }
    })
}
