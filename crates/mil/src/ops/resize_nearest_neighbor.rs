//! `resize_nearest_neighbor`: the last two axes get `target_size_height` and `target_size_width` points; point `i` of `n` takes
//! element ⌊i · extent / n⌋.

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::resizing::{Grid, resize};
use crate::ops::support::{dims, upsampling};
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct ResizeNearestNeighbor;

const TARGET_SIZE_HEIGHT: usize = 1;

impl Op for ResizeNearestNeighbor {
    fn name(&self) -> &'static str {
        "resize_nearest_neighbor"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::required("target_size_height"), Param::required("target_size_width")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        upsampling::infer(x, |axis, _| {
            let param = TARGET_SIZE_HEIGHT + axis;
            dims::extent(x, param, x.i32(param)?)
        })
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        resize(x, &mut out[0], 2, Grid::Default, true)
    }

    fn cases(&self) -> Vec<Case> {
        let x = Tensor::floats(DType::F16, &[1, 2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        vec![
            Case::new("larger and smaller")
                .input("x", x)
                .constant("target_size_height", 3)
                .constant("target_size_width", 2)
                .expect(Tensor::floats(DType::F16, &[1, 3, 2], &[1.0, 2.0, 1.0, 2.0, 4.0, 5.0])),
        ]
    }
}
