//! `space_to_batch`: images, padded with zeros, are cut into blocks of `block_shape`; the pixels of one place in the blocks
//! make an image of the batch (see `support::batches`).

use smallvec::smallvec;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::batches::Grid;
use crate::ops::support::dims;
use crate::tensor::{DataMut, Tensor};
use crate::types::{DType, Opset};

pub(super) struct SpaceToBatch;

const X: usize = 0;
const PADDINGS: usize = 2;

impl Op for SpaceToBatch {
    fn name(&self) -> &'static str {
        "space_to_batch"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::required("block_shape"), Param::required("paddings")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let mut ty = dims::numbers(x, X)?;
        let grid = Grid::new(x)?;
        let [n, c, h, w] = ty.shape[..] else { return Err(x.bad(X, "rank 4", ty)) };
        let mut shape = [dims::product(&[n, grid.block[0], grid.block[1]])?, c, h, w];
        for k in 0..2 {
            let padded = dims::sum(&[shape[k + 2], grid.frame[k][0], grid.frame[k][1]])?;
            if padded % grid.block[k] != 0 {
                return Err(x.bad(PADDINGS, format!("a padded extent that {} divides", grid.block[k]), padded));
            }
            shape[k + 2] = padded / grid.block[k];
        }
        ty.shape = shape[..].into();
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let out = &mut out[0];
        match &mut out.data {
            DataMut::F32(r) => r.fill(0.0),
            DataMut::I32(r) => r.fill(0),
            DataMut::Bool(r) => r.fill(false),
        }
        if out.shape.contains(&0) || x.shape(X).contains(&0) {
            return Ok(());
        }
        let small = out.shape;
        Grid::new(x)?.copy(x, out, x.shape(X), small, true)
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            Case::new("without padding")
                .input(
                    "x",
                    Tensor::floats(
                        DType::F16,
                        &[2, 1, 2, 4],
                        &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0],
                    ),
                )
                .constant("block_shape", [2, 2])
                .constant("paddings", crate::Const::ints(DType::I32, &[2, 2], &[0, 0, 0, 0]))
                .expect(Tensor::floats(
                    DType::F16,
                    &[8, 1, 1, 2],
                    &[1.0, 3.0, 9.0, 11.0, 2.0, 4.0, 10.0, 12.0, 5.0, 7.0, 13.0, 15.0, 6.0, 8.0, 14.0, 16.0],
                )),
            Case::new("with padding, blocks that are not square")
                .input(
                    "x",
                    Tensor::floats(
                        DType::F16,
                        &[1, 2, 3, 4],
                        &[
                            1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0,
                            17.0, 18.0, 19.0, 20.0, 21.0, 22.0, 23.0, 24.0,
                        ],
                    ),
                )
                .constant("block_shape", [2, 3])
                .constant("paddings", crate::Const::ints(DType::I32, &[2, 2], &[1, 0, 1, 1]))
                .expect(Tensor::floats(
                    DType::F16,
                    &[6, 2, 2, 2],
                    &[
                        0.0, 0.0, 0.0, 7.0, 0.0, 0.0, 0.0, 19.0, 0.0, 0.0, 5.0, 8.0, 0.0, 0.0, 17.0, 20.0, 0.0, 0.0,
                        6.0, 0.0, 0.0, 0.0, 18.0, 0.0, 0.0, 3.0, 0.0, 11.0, 0.0, 15.0, 0.0, 23.0, 1.0, 4.0, 9.0, 12.0,
                        13.0, 16.0, 21.0, 24.0, 2.0, 0.0, 10.0, 0.0, 14.0, 0.0, 22.0, 0.0,
                    ],
                )),
            Case::new("more padding than a block")
                .input("x", Tensor::floats(DType::F16, &[1, 1, 1, 1], &[1.0]))
                .constant("block_shape", [2, 2])
                .constant("paddings", crate::Const::ints(DType::I32, &[2, 2], &[3, 0, 1, 2]))
                .expect(Tensor::floats(
                    DType::F16,
                    &[4, 1, 2, 2],
                    &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0],
                )),
        ]
    }
}
