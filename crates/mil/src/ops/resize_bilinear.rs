//! `resize_bilinear`: the last two axes get `target_size_height` and `target_size_width` points (1 by default), with elements
//! mixed by nearness. `sampling_mode` says how the points are spread (see `support::resizing`).

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::resizing::{Grid, resize};
use crate::ops::support::{dims, upsampling};
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct ResizeBilinear;

const TARGET_SIZE_HEIGHT: usize = 1;
const SAMPLING_MODE: usize = 3;

impl Op for ResizeBilinear {
    fn name(&self) -> &'static str {
        "resize_bilinear"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::required("x"),
                Param::optional("target_size_height"),
                Param::optional("target_size_width"),
                Param::optional("sampling_mode"),
            ]
        }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        Grid::new(x, SAMPLING_MODE)?;
        upsampling::infer(x, |axis, _| {
            let param = TARGET_SIZE_HEIGHT + axis;
            dims::extent(x, param, x.i32_or(param, 1)?)
        })
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        resize(x, &mut out[0], 2, Grid::new(x, SAMPLING_MODE)?, false)
    }

    fn cases(&self) -> Vec<Case> {
        let x = Tensor::floats(DType::F16, &[1, 1, 2], &[0.0, 10.0]);
        let case = |name, mode: &str, expect: &[f32]| {
            Case::new(name)
                .input("x", x.clone())
                .constant("target_size_height", 1)
                .constant("target_size_width", expect.len() as i32)
                .constant("sampling_mode", mode)
                .expect(Tensor::floats(DType::F16, &[1, 1, expect.len()], expect))
        };
        vec![
            case("corners meet", "STRICT_ALIGN_CORNERS", &[0.0, 2.5, 5.0, 7.5, 10.0]),
            case("a single point in the middle", "ALIGN_CORNERS", &[5.0]),
            case("only the first corners meet", "DEFAULT", &[0.0, 4.0, 8.0, 10.0, 10.0]),
            case("half a spacing from the ends", "OFFSET_CORNERS", &[1.0, 3.0, 5.0, 7.0, 9.0]),
            case("elements are areas", "UNALIGN_CORNERS", &[0.0, 1.0, 5.0, 9.0, 10.0]),
            Case::new("by default to one point, the first").input("x", x).expect(Tensor::floats(
                DType::F16,
                &[1, 1, 1],
                &[0.0],
            )),
        ]
    }
}
