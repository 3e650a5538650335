//! `upsample_bilinear`: the last two axes grow by `scale_factor_height` and `scale_factor_width`, with elements mixed by
//! nearness. With `align_corners`, the default, the corners meet; with `half_pixel_centers`, by default its opposite, elements
//! are areas; with neither only the first corners meet. Both together are not supported.

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::resizing::{Grid, resize};
use crate::ops::support::upsampling;
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct UpsampleBilinear;

const SCALE_FACTOR_HEIGHT: usize = 1;
const ALIGN_CORNERS: usize = 3;
const HALF_PIXEL_CENTERS: usize = 4;

fn grid(x: &dyn Operands) -> Result<Grid, OpError> {
    let align = x.bool_or(ALIGN_CORNERS, true)?;
    match (align, x.bool_or(HALF_PIXEL_CENTERS, !align)?) {
        (true, false) => Ok(Grid::StrictAlignCorners),
        (false, true) => Ok(Grid::UnalignCorners),
        (false, false) => Ok(Grid::Default),
        (true, true) => Err(OpError::Unsupported { what: "`align_corners` with `half_pixel_centers`".to_owned() }),
    }
}

impl Op for UpsampleBilinear {
    fn name(&self) -> &'static str {
        "upsample_bilinear"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::required("x"),
                Param::optional("scale_factor_height"),
                Param::optional("scale_factor_width"),
                Param::optional("align_corners"),
                Param::optional("half_pixel_centers"),
            ]
        }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        grid(x)?;
        upsampling::infer(x, |axis, n| upsampling::scaled(x, SCALE_FACTOR_HEIGHT + axis, n))
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        resize(x, &mut out[0], 2, grid(x)?, false)
    }

    fn cases(&self) -> Vec<Case> {
        let x = Tensor::floats(DType::F16, &[1, 1, 2], &[0.0, 10.0]);
        let case = |name, width: f32, expect: &[f32]| {
            Case::new(name).input("x", x.clone()).constant("scale_factor_width", width).expect(Tensor::floats(
                DType::F16,
                &[1, 1, expect.len()],
                expect,
            ))
        };
        vec![
            case("by default the corners meet", 2.5, &[0.0, 2.5, 5.0, 7.5, 10.0]),
            case("elements are areas", 2.5, &[0.0, 1.0, 5.0, 9.0, 10.0]).constant("align_corners", false),
            case("only the first corners meet", 2.5, &[0.0, 4.0, 8.0, 10.0, 10.0])
                .constant("align_corners", false)
                .constant("half_pixel_centers", false),
            Case::new("both axes")
                .input("x", Tensor::floats(DType::F16, &[1, 2, 2], &[0.0, 2.0, 4.0, 6.0]))
                .constant("scale_factor_height", 2)
                .constant("scale_factor_width", 1)
                .constant("align_corners", false)
                .expect(Tensor::floats(DType::F16, &[1, 4, 2], &[0.0, 2.0, 1.0, 3.0, 3.0, 5.0, 4.0, 6.0])),
        ]
    }
}
