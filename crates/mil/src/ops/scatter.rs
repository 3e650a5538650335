//! `scatter`: `data` after the slices of `updates` along `axis` have met those that `indices` name, by `mode`: one of
//! `update`, `add` (the default), `sub`, `mul`, `div`, `max`, `min`; one after the other. Indices are read as in `gather`.

use smallvec::smallvec;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::dims;
use crate::ops::support::picking::{Indices, expect_ints};
use crate::ops::support::scattering::{Mode, expect_updates, scatter};
use crate::tensor::Tensor;
use crate::types::{DType, Opset, Shape};

pub(super) struct Scatter;

const DATA: usize = 0;
const INDICES: usize = 1;
const AXIS: usize = 3;
const MODE: usize = 4;
const VALIDATE_INDICES: usize = 5;

impl Op for Scatter {
    fn name(&self) -> &'static str {
        "scatter"
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
        let mut updates = Shape::from_slice(&ty.shape[..axis]);
        updates.extend_from_slice(x.shape(INDICES));
        updates.extend_from_slice(&ty.shape[axis + 1..]);
        expect_updates(x, &updates)?;
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let indices = Indices::new(x, INDICES, VALIDATE_INDICES)?;
        let shape = x.shape(DATA);
        if shape.contains(&0) || indices.values.is_empty() {
            return dims::copy(x, DATA, &mut out[0]);
        }
        let (outer, n, inner) = dims::around(shape, dims::axis_or(x, AXIS, shape.len(), 0)?)?;
        scatter(x, &mut out[0], Mode::new(x, MODE)?, inner, |meet| {
            for o in 0..outer {
                for (j, &i) in indices.values.iter().enumerate() {
                    meet((o * n + indices.place(i, n)?) * inner, (o * indices.values.len() + j) * inner);
                }
            }
            Ok(())
        })
    }

    fn cases(&self) -> Vec<Case> {
        let data = Tensor::floats(DType::F16, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let rows = Tensor::floats(DType::F16, &[2, 3], &[5.0, 6.0, 7.0, 8.0, 9.0, 10.0]);
        let vector = |name, mode: &str, expect: [i32; 3]| {
            Case::new(name)
                .input("data", Tensor::ints(DType::I32, &[3], &[10, 20, 30]))
                .input("indices", Tensor::ints(DType::I32, &[3], &[2, 0, 2]))
                .input("updates", Tensor::ints(DType::I32, &[3], &[4, 7, -3]))
                .constant("mode", mode)
                .constant("validate_indices", true)
                .expect(Tensor::ints(DType::I32, &[3], &expect))
        };
        vec![
            Case::new("rows are added by default")
                .input("data", data.clone())
                .input("indices", Tensor::ints(DType::I32, &[2], &[1, 0]))
                .input("updates", rows)
                .expect(Tensor::floats(DType::F16, &[2, 3], &[9.0, 11.0, 13.0, 9.0, 11.0, 13.0])),
            Case::new("along the last axis, a negative index")
                .input("data", data)
                .input("indices", Tensor::ints(DType::I32, &[1], &[-1]))
                .input("updates", Tensor::floats(DType::F16, &[2, 1], &[-1.0, -2.0]))
                .constant("axis", -1)
                .constant("mode", "update")
                .expect(Tensor::floats(DType::F16, &[2, 3], &[1.0, 2.0, -1.0, 4.0, 5.0, -2.0])),
            vector("the last of two updates stays", "update", [7, 20, -3]),
            vector("two updates are added", "add", [17, 20, 31]),
            vector("subtracted", "sub", [3, 20, 29]),
            vector("multiplied", "mul", [70, 20, -360]),
            vector("divided", "div", [1, 20, -2]),
            vector("the larger stays", "max", [10, 20, 30]),
            vector("the smaller stays", "min", [7, 20, -3]),
        ]
    }
}
