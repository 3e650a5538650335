//! `scatter_nd`: `data` after the slices of `updates` have met those that the rows of `indices` (its last axis) name. `mode`
//! and indices are those of `scatter`.

use smallvec::smallvec;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::dims;
use crate::ops::support::picking::{Indices, Rows, expect_ints};
use crate::ops::support::scattering::{Mode, expect_updates, scatter};
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct ScatterNd;

const DATA: usize = 0;
const INDICES: usize = 1;
const MODE: usize = 3;
const VALIDATE_INDICES: usize = 4;

impl Op for ScatterNd {
    fn name(&self) -> &'static str {
        "scatter_nd"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::required("data"),
                Param::required("indices"),
                Param::required("updates"),
                Param::optional("mode"),
                Param::optional("validate_indices"),
            ]
        }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let ty = dims::numbers(x, DATA)?;
        expect_ints(x, INDICES)?;
        Mode::new(x, MODE)?;
        let rows = Rows::new(&ty.shape, x.shape(INDICES), 0)?;
        expect_updates(x, &rows.result(&ty.shape, x.shape(INDICES)))?;
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let (shape, indices) = (x.shape(DATA), x.shape(INDICES));
        let own = &indices[..indices.len().saturating_sub(1)];
        if shape.contains(&0) || own.contains(&0) {
            return dims::copy(x, DATA, &mut out[0]);
        }
        let rows = Rows::new(shape, indices, 0)?;
        let slice = dims::product(&shape[rows.depth..])?;
        let places = Indices::new(x, INDICES, VALIDATE_INDICES)?;
        scatter(x, &mut out[0], Mode::new(x, MODE)?, slice, |meet| {
            let mut from = 0;
            rows.each(shape, own, &places, |to| {
                meet(to, from);
                from += slice;
            })
        })
    }

    fn cases(&self) -> Vec<Case> {
        let data = Tensor::floats(DType::F16, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        vec![
            Case::new("elements are added by default, two to one place")
                .input("data", data.clone())
                .input("indices", Tensor::ints(DType::I32, &[3, 2], &[1, 0, 0, 2, 1, 0]))
                .input("updates", Tensor::floats(DType::F16, &[3], &[10.0, 20.0, 30.0]))
                .expect(Tensor::floats(DType::F16, &[2, 3], &[1.0, 2.0, 23.0, 44.0, 5.0, 6.0])),
            Case::new("a row in place of what is there, a negative index")
                .input("data", data)
                .input("indices", Tensor::ints(DType::I32, &[1, 1], &[-1]))
                .input("updates", Tensor::floats(DType::F16, &[1, 3], &[7.0, 8.0, 9.0]))
                .constant("mode", "update")
                .expect(Tensor::floats(DType::F16, &[2, 3], &[1.0, 2.0, 3.0, 7.0, 8.0, 9.0])),
            Case::new("integers, multiplied")
                .input("data", Tensor::ints(DType::I32, &[3], &[1, 2, 3]))
                .input("indices", Tensor::ints(DType::I32, &[2, 1], &[0, 2]))
                .input("updates", Tensor::ints(DType::I32, &[2], &[-5, 4]))
                .constant("mode", "mul")
                .constant("validate_indices", true)
                .expect(Tensor::ints(DType::I32, &[3], &[-5, 2, 12])),
        ]
    }
}
