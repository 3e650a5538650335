//! `gather_along_axis`: each element of the result is the one of `x` that stands where it does, but at the index in
//! `indices` along `axis`. Indices are read as in `gather`.

use smallvec::smallvec;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::dims;
use crate::ops::support::picking::{Indices, expect_ints};
use crate::tensor::{Data, DataMut, Tensor};
use crate::types::{DType, Opset};

pub(super) struct GatherAlongAxis;

const X: usize = 0;
const INDICES: usize = 1;
const AXIS: usize = 2;
const VALIDATE_INDICES: usize = 3;

impl Op for GatherAlongAxis {
    fn name(&self) -> &'static str {
        "gather_along_axis"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::required("x"),
                Param::required("indices"),
                Param::optional("axis"),
                Param::optional("validate_indices"),
            ]
        }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let mut ty = dims::numbers(x, X)?;
        expect_ints(x, INDICES)?;
        let axis = dims::axis_or(x, AXIS, ty.shape.len(), 0)?;
        let indices = x.shape(INDICES);
        if indices.len() != ty.shape.len() || (0..indices.len()).any(|i| i != axis && indices[i] != ty.shape[i]) {
            return Err(x.bad(INDICES, format!("the shape of x, {:?}, except on axis {axis}", ty.shape), indices));
        }
        ty.shape = indices.into();
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        if out[0].shape.contains(&0) {
            return Ok(());
        }
        let axis = dims::axis_or(x, AXIS, x.shape(X).len(), 0)?;
        let (_, n, inner) = dims::around(x.shape(X), axis)?;
        let k = out[0].shape[axis];
        let indices = Indices::new(x, INDICES, VALIDATE_INDICES)?;
        match (x.data(X)?, &mut out[0].data) {
            (Data::F32(a), DataMut::F32(r)) => take(a, r, &indices, [n, k, inner]),
            (Data::I32(a), DataMut::I32(r)) => take(a, r, &indices, [n, k, inner]),
            (Data::Bool(a), DataMut::Bool(r)) => take(a, r, &indices, [n, k, inner]),
            _ => Err(dims::class_mismatch()),
        }
    }

    fn cases(&self) -> Vec<Case> {
        let x = Tensor::floats(DType::F16, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        vec![
            Case::new("by default along the first axis")
                .input("x", x.clone())
                .input("indices", Tensor::ints(DType::U16, &[1, 3], &[1, 0, 1]))
                .expect(Tensor::floats(DType::F16, &[1, 3], &[4.0, 2.0, 6.0])),
            Case::new("along the last axis, negative indices")
                .input("x", x)
                .input("indices", Tensor::ints(DType::I32, &[2, 2], &[-1, 0, 1, -3]))
                .constant("axis", -1)
                .constant("validate_indices", false)
                .expect(Tensor::floats(DType::F16, &[2, 2], &[3.0, 1.0, 5.0, 4.0])),
            Case::new("integers, of a vector")
                .input("x", Tensor::ints(DType::I32, &[2], &[7, 8]))
                .input("indices", Tensor::ints(DType::I16, &[3], &[1, 1, 0]))
                .constant("axis", 0)
                .constant("validate_indices", true)
                .expect(Tensor::ints(DType::I32, &[3], &[8, 8, 7])),
        ]
    }
}

fn take<T: Copy>(a: &[T], r: &mut [T], indices: &Indices<'_>, [n, k, inner]: [usize; 3]) -> Result<(), OpError> {
    for (at, (r, &i)) in r.iter_mut().zip(indices.values).enumerate() {
        let (outer, j) = (at / (k * inner), at % inner);
        *r = a[(outer * n + indices.place(i, n)?) * inner + j];
    }
    Ok(())
}
