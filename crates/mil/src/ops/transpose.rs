//! `transpose`: axis `i` of the result is axis `perm[i]` of `x`.

use smallvec::smallvec;

use crate::case::Case;
use crate::layout::Layout;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::dims;
use crate::ops::support::strided::Nest;
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct Transpose;

const X: usize = 0;
const PERM: usize = 1;

impl Op for Transpose {
    fn name(&self) -> &'static str {
        "transpose"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::required("perm")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let mut ty = dims::numbers(x, X)?;
        let perm = dims::axes(x, PERM, ty.shape.len())?;
        if perm.len() != ty.shape.len() {
            return Err(x.bad(PERM, format!("{} axes", ty.shape.len()), perm));
        }
        ty.shape = perm.iter().map(|&axis| ty.shape[axis]).collect();
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let perm = dims::axes(x, PERM, x.shape(X).len())?;
        let (from, to) = (dims::strides(x.shape(X)), dims::strides(out[0].shape));
        let mut nest = Nest::at(0, 0);
        for ((&axis, &turns), &to) in perm.iter().zip(out[0].shape).zip(&to) {
            nest.push(turns, from[axis], to);
        }
        nest.copy(x.data(X)?, &mut out[0].data)
    }

    fn view(&self, x: &dyn Operands, layout: &Layout) -> Option<Layout> {
        Some(layout.permuted(&dims::axes(x, PERM, layout.shape.len()).ok()?))
    }

    fn cases(&self) -> Vec<Case> {
        let x = Tensor::floats(DType::F16, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let y: Vec<i32> = (0..12).collect();
        vec![
            Case::new("a matrix").input("x", x.clone()).constant("perm", [1, 0]).expect(Tensor::floats(
                DType::F16,
                &[3, 2],
                &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0],
            )),
            Case::new("negative axes count from the end")
                .input("x", Tensor::ints(DType::I32, &[2, 3, 2], &y))
                .constant("perm", [-1, 0, -2])
                .expect(Tensor::ints(DType::I32, &[2, 2, 3], &[0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11])),
            Case::new("heads and positions change places")
                .input("x", Tensor::ints(DType::I32, &[1, 3, 2, 2], &y))
                .constant("perm", [0, 2, 1, 3])
                .expect(Tensor::ints(DType::I32, &[1, 2, 3, 2], &[0, 1, 4, 5, 8, 9, 2, 3, 6, 7, 10, 11])),
            Case::new("truth values")
                .input("x", Tensor::bools(&[2, 2], &[true, false, true, true]))
                .constant("perm", [1, 0])
                .expect(Tensor::bools(&[2, 2], &[true, true, false, true])),
        ]
    }
}
