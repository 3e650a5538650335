//! `batch_to_space`: images of a batch are put together from blocks of `block_shape`, then cropped: the inverse of
//! `space_to_batch` (see `support::batches`).

use smallvec::smallvec;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::batches::Grid;
use crate::ops::support::dims;
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct BatchToSpace;

const X: usize = 0;
const BLOCK_SHAPE: usize = 1;
const CROPS: usize = 2;

impl Op for BatchToSpace {
    fn name(&self) -> &'static str {
        "batch_to_space"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::required("block_shape"), Param::required("crops")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let mut ty = dims::numbers(x, X)?;
        let grid = Grid::new(x)?;
        let [n, c, h, w] = ty.shape[..] else { return Err(x.bad(X, "rank 4", ty)) };
        let blocks = dims::product(&grid.block)?;
        if n % blocks != 0 {
            return Err(x.bad(BLOCK_SHAPE, format!("blocks whose size divides the batch of {n}"), grid.block));
        }
        let mut shape = [n / blocks, c, h, w];
        for k in 0..2 {
            let (whole, cropped) = (dims::product(&[shape[k + 2], grid.block[k]])?, dims::sum(&grid.frame[k])?);
            shape[k + 2] =
                whole.checked_sub(cropped).ok_or_else(|| x.bad(CROPS, format!("at most {whole} in all"), cropped))?;
        }
        ty.shape = shape[..].into();
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let out = &mut out[0];
        if out.shape.contains(&0) {
            return Ok(());
        }
        let whole = out.shape;
        Grid::new(x)?.copy(x, out, whole, x.shape(X), false)
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            Case::new("without crops")
                .input(
                    "x",
                    Tensor::floats(
                        DType::F16,
                        &[8, 1, 1, 2],
                        &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0],
                    ),
                )
                .constant("block_shape", [2, 2])
                .constant("crops", crate::Const::ints(DType::I32, &[2, 2], &[0, 0, 0, 0]))
                .expect(Tensor::floats(
                    DType::F16,
                    &[2, 1, 2, 4],
                    &[1.0, 5.0, 2.0, 6.0, 9.0, 13.0, 10.0, 14.0, 3.0, 7.0, 4.0, 8.0, 11.0, 15.0, 12.0, 16.0],
                )),
            Case::new("with crops, blocks that are not square")
                .input(
                    "x",
                    Tensor::floats(
                        DType::F16,
                        &[6, 2, 2, 2],
                        &[
                            1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0,
                            17.0, 18.0, 19.0, 20.0, 21.0, 22.0, 23.0, 24.0, 25.0, 26.0, 27.0, 28.0, 29.0, 30.0, 31.0,
                            32.0, 33.0, 34.0, 35.0, 36.0, 37.0, 38.0, 39.0, 40.0, 41.0, 42.0, 43.0, 44.0, 45.0, 46.0,
                            47.0, 48.0,
                        ],
                    ),
                )
                .constant("block_shape", [2, 3])
                .constant("crops", crate::Const::ints(DType::I32, &[2, 2], &[1, 0, 1, 1]))
                .expect(Tensor::floats(
                    DType::F16,
                    &[1, 2, 3, 4],
                    &[
                        33.0, 41.0, 26.0, 34.0, 11.0, 19.0, 4.0, 12.0, 35.0, 43.0, 28.0, 36.0, 37.0, 45.0, 30.0, 38.0,
                        15.0, 23.0, 8.0, 16.0, 39.0, 47.0, 32.0, 40.0,
                    ],
                )),
            Case::new("a crop of more than a block")
                .input(
                    "x",
                    Tensor::floats(
                        DType::F16,
                        &[4, 1, 2, 2],
                        &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0],
                    ),
                )
                .constant("block_shape", [2, 2])
                .constant("crops", crate::Const::ints(DType::I32, &[2, 2], &[3, 0, 1, 2]))
                .expect(Tensor::floats(DType::F16, &[1, 1, 1, 1], &[15.0])),
        ]
    }
}
