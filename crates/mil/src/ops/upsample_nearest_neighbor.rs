//! `upsample_nearest_neighbor`: the last two axes grow by `scale_factor_height` and `scale_factor_width`; point `i` of `n` takes
//! element ⌊i · extent / n⌋.

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::resizing::{Grid, resize};
use crate::ops::support::upsampling;
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct UpsampleNearestNeighbor;

const SCALE_FACTOR_HEIGHT: usize = 1;

impl Op for UpsampleNearestNeighbor {
    fn name(&self) -> &'static str {
        "upsample_nearest_neighbor"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::optional("scale_factor_height"), Param::optional("scale_factor_width")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        upsampling::infer(x, |axis, n| upsampling::scaled(x, SCALE_FACTOR_HEIGHT + axis, n))
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        resize(x, &mut out[0], 2, Grid::Default, true)
    }

    fn cases(&self) -> Vec<Case> {
        let x = Tensor::floats(DType::F16, &[1, 2, 2], &[1.0, 2.0, 3.0, 4.0]);
        let f = |shape: &[usize], v: &[f32]| Tensor::floats(DType::F16, shape, v);
        vec![
            Case::new("by whole factors")
                .input("x", x.clone())
                .constant("scale_factor_height", 2)
                .constant("scale_factor_width", 3)
                .expect(f(
                    &[1, 4, 6],
                    &[
                        1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0, 4.0, 4.0, 4.0, 3.0,
                        3.0, 3.0, 4.0, 4.0, 4.0,
                    ],
                )),
            Case::new("by a fraction, rounded down")
                .input("x", x.clone())
                .constant("scale_factor_width", 1.75)
                .expect(f(&[1, 2, 3], &[1.0, 1.0, 2.0, 3.0, 3.0, 4.0])),
            Case::new("by nothing").input("x", x.clone()).expect(x),
        ]
    }
}
