//! `scatter_along_axis`: `data` after each element of `updates` has met the one that stands where it does, but at the index
//! in `indices` along `axis`. `mode` and indices are those of `scatter`.

use smallvec::smallvec;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::dims;
use crate::ops::support::picking::{Indices, expect_ints};
use crate::ops::support::scattering::{Mode, expect_updates, scatter};
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct ScatterAlongAxis;

const DATA: usize = 0;
const INDICES: usize = 1;
const AXIS: usize = 3;
const MODE: usize = 4;
const VALIDATE_INDICES: usize = 5;

impl Op for ScatterAlongAxis {
    fn name(&self) -> &'static str {
        "scatter_along_axis"
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
                Param::optional("axis"),
                Param::optional("mode"),
                Param::optional("validate_indices"),
            ]
        }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let ty = dims::numbers(x, DATA)?;
        expect_ints(x, INDICES)?;
        Mode::new(x, MODE)?;
        let axis = dims::axis_or(x, AXIS, ty.shape.len(), 0)?;
        let indices = x.shape(INDICES);
        if indices.len() != ty.shape.len() || (0..indices.len()).any(|i| i != axis && indices[i] != ty.shape[i]) {
            return Err(x.bad(INDICES, format!("the shape of data, {:?}, except on axis {axis}", ty.shape), indices));
        }
        expect_updates(x, indices)?;
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let indices = Indices::new(x, INDICES, VALIDATE_INDICES)?;
        let shape = x.shape(DATA);
        if shape.contains(&0) || indices.values.is_empty() {
            return dims::copy(x, DATA, &mut out[0]);
        }
        let axis = dims::axis_or(x, AXIS, shape.len(), 0)?;
        let (_, n, inner) = dims::around(shape, axis)?;
        let k = x.shape(INDICES)[axis];
        scatter(x, &mut out[0], Mode::new(x, MODE)?, 1, |meet| {
            for (from, &i) in indices.values.iter().enumerate() {
                meet((from / (k * inner) * n + indices.place(i, n)?) * inner + from % inner, from);
            }
            Ok(())
        })
    }

    fn cases(&self) -> Vec<Case> {
        let data = Tensor::floats(DType::F16, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        vec![
            Case::new("added by default, along the first axis")
                .input("data", data.clone())
                .input("indices", Tensor::ints(DType::I32, &[1, 3], &[1, 0, 1]))
                .input("updates", Tensor::floats(DType::F16, &[1, 3], &[10.0, 20.0, 30.0]))
                .expect(Tensor::floats(DType::F16, &[2, 3], &[1.0, 22.0, 3.0, 14.0, 5.0, 36.0])),
            Case::new("in place of what is there, along the last axis")
                .input("data", data)
                .input("indices", Tensor::ints(DType::I32, &[2, 2], &[-1, 0, 1, 1]))
                .input("updates", Tensor::floats(DType::F16, &[2, 2], &[7.0, 8.0, 9.0, 10.0]))
                .constant("axis", -1)
                .constant("mode", "update")
                .expect(Tensor::floats(DType::F16, &[2, 3], &[8.0, 2.0, 7.0, 4.0, 10.0, 6.0])),
            Case::new("integers, the larger stays")
                .input("data", Tensor::ints(DType::I32, &[2], &[7, 8]))
                .input("indices", Tensor::ints(DType::I32, &[2], &[1, 0]))
                .input("updates", Tensor::ints(DType::I32, &[2], &[5, 9]))
                .constant("mode", "max")
                .constant("validate_indices", true)
                .expect(Tensor::ints(DType::I32, &[2], &[9, 8])),
        ]
    }
}
