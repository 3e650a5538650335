//! `depth_to_space`: groups of `block_size`² channels become square blocks of pixels. Channel `(by · b + bx) · C + c` is pixel
//! (`by`, `bx`) of the blocks of channel `c`, as in TensorFlow.

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::pixels::{self, Order};
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct DepthToSpace;

impl Op for DepthToSpace {
    fn name(&self) -> &'static str {
        "depth_to_space"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::required("block_size")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        pixels::infer_flat(x)
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        pixels::eval(x, &mut out[0], Order::BlockFirst, true)
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            Case::new("two channels of two blocks each")
                .input(
                    "x",
                    Tensor::floats(
                        DType::F16,
                        &[1, 8, 1, 2],
                        &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0],
                    ),
                )
                .constant("block_size", 2)
                .expect(Tensor::floats(
                    DType::F16,
                    &[1, 2, 2, 4],
                    &[0.0, 4.0, 1.0, 5.0, 8.0, 12.0, 9.0, 13.0, 2.0, 6.0, 3.0, 7.0, 10.0, 14.0, 11.0, 15.0],
                )),
            Case::new("two images of one block")
                .input("x", Tensor::floats(DType::F16, &[2, 4, 1, 1], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]))
                .constant("block_size", 2)
                .expect(Tensor::floats(DType::F16, &[2, 1, 2, 2], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])),
        ]
    }
}
