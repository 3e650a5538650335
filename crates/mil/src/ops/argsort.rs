//! `argsort`: along `axis` the indices that put `x` in descending order, or ascending. Of equal elements the one of lower
//! index comes first; NaN counts as larger than every number.

use smallvec::smallvec;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::dims;
use crate::ops::support::sort::{lines, select_indices};
use crate::tensor::{Data, Tensor};
use crate::types::{Class, DType, Opset};

pub(super) struct Argsort;

const X: usize = 0;
const AXIS: usize = 1;
const ASCENDING: usize = 2;

impl Op for Argsort {
    fn name(&self) -> &'static str {
        "argsort"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::optional("axis"), Param::optional("ascending")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let mut ty = dims::numbers(x, X)?;
        if ty.dtype.class() == Class::Bool {
            return Err(x.bad(X, "numbers", ty.dtype));
        }
        let axis = dims::axis_or(x, AXIS, ty.shape.len(), -1)?;
        if i32::try_from(ty.shape[axis]).is_err() {
            return Err(x.bad(X, "an axis whose indices fit 32 bits", ty.shape[axis]));
        }
        ty.dtype = DType::I32;
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let shape = x.shape(X);
        if shape.contains(&0) {
            return Ok(());
        }
        let (outer, n, inner) = dims::around(shape, dims::axis_or(x, AXIS, shape.len(), -1)?)?;
        let ascending = x.bool_or(ASCENDING, false)?;
        let indices = out[0].i32s()?;
        for line in lines(outer, n, inner) {
            match x.data(X)? {
                Data::F32(a) => select_indices(a, line, ascending, indices, line),
                Data::I32(a) => select_indices(a, line, ascending, indices, line),
                Data::Bool(_) => return Err(dims::class_mismatch()),
            }
        }
        Ok(())
    }

    fn cases(&self) -> Vec<Case> {
        let x = Tensor::floats(DType::F16, &[2, 3], &[3.0, 1.0, 4.0, 7.0, 7.0, -7.0]);
        vec![
            Case::new("descending along the last axis").input("x", x.clone()).expect(Tensor::ints(
                DType::I32,
                &[2, 3],
                &[2, 0, 1, 0, 1, 2],
            )),
            Case::new("ascending along the first axis")
                .input("x", x)
                .constant("axis", 0)
                .constant("ascending", true)
                .expect(Tensor::ints(DType::I32, &[2, 3], &[0, 0, 1, 1, 1, 0])),
            Case::new("integers, negative axis")
                .input("x", Tensor::ints(DType::I32, &[3], &[i32::MIN, i32::MAX, 0]))
                .constant("axis", -1)
                .constant("ascending", false)
                .expect(Tensor::ints(DType::I32, &[3], &[1, 2, 0])),
        ]
    }
}
