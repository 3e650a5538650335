//! `tile`: `x` repeated `reps[i]` times along axis `i`.

use smallvec::smallvec;

use crate::case::Case;
use crate::layout::Layout;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::dims;
use crate::ops::support::strided::Nest;
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct Tile;

const X: usize = 0;
const REPS: usize = 1;

impl Op for Tile {
    fn name(&self) -> &'static str {
        "tile"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::required("reps")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let mut ty = dims::numbers(x, X)?;
        let reps = x.i32s(REPS)?;
        if reps.len() != ty.shape.len() || reps.iter().any(|&r| r < 1) {
            return Err(x.bad(REPS, format!("{} numbers of 1 or more, one per axis", ty.shape.len()), reps));
        }
        for (n, &r) in ty.shape.iter_mut().zip(reps) {
            *n = dims::product(&[*n, r as usize])?;
        }
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let shape = x.shape(X);
        let (from, to) = (dims::strides(shape), dims::strides(out[0].shape));
        let mut nest = Nest::at(0, 0);
        for (i, &n) in shape.iter().enumerate() {
            nest.push(out[0].shape[i] / n.max(1), 0, to[i].wrapping_mul(n));
            nest.push(n, from[i], to[i]);
        }
        nest.copy(x.data(X)?, &mut out[0].data)
    }

    fn view(&self, x: &dyn Operands, layout: &Layout) -> Option<Layout> {
        let mut all = Layout { shape: self.infer(x).ok()?.pop()?.shape, ..layout.clone() };
        for (i, &n) in layout.shape.iter().enumerate() {
            match (n, all.shape[i]) {
                (n, m) if n == m => {}
                (1, _) => all.strides[i] = 0,
                _ => return None,
            }
        }
        Some(all)
    }

    fn cases(&self) -> Vec<Case> {
        let x = Tensor::floats(DType::F16, &[2, 1], &[1.0, 2.0]);
        vec![
            Case::new("along both axes").input("x", x).constant("reps", [2, 3]).expect(Tensor::floats(
                DType::F16,
                &[4, 3],
                &[1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0],
            )),
            Case::new("rows, repeated as often as is known at run time")
                .input("x", Tensor::ints(DType::I32, &[1, 3], &[1, 2, 3]))
                .input("reps", Tensor::ints(DType::I32, &[2], &[2, 1]))
                .expect(Tensor::ints(DType::I32, &[2, 3], &[1, 2, 3, 1, 2, 3])),
            Case::new("truth values")
                .input("x", Tensor::bools(&[2], &[true, false]))
                .constant("reps", [2])
                .expect(Tensor::bools(&[4], &[true, false, true, false])),
        ]
    }
}
