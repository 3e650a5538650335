//! `affine`: pixel (x, y) of the result is the one of `x` at (a₀x + a₁y + a₂, b₀x + b₁y + b₂), where both count from -1 to 1
//! between the middles of the border pixels; zero outside. `transform_matrix` holds a₀ a₁ a₂ b₀ b₁ b₂, for each image or for all.

use smallvec::smallvec;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::dims;
use crate::ops::support::elementwise::expect_float;
use crate::ops::support::sampling::{Outside, Plane};
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct Affine;

const X: usize = 0;
const TRANSFORM_MATRIX: usize = 1;
const OUTPUT_HEIGHT: usize = 2;
const OUTPUT_WIDTH: usize = 3;
const SAMPLING_MODE: usize = 4;
const PADDING_MODE: usize = 5;
const PADDING_VALUE: usize = 6;
const COORDINATES_MODE: usize = 7;
const ALIGN_CORNERS: usize = 8;

impl Op for Affine {
    fn name(&self) -> &'static str {
        "affine"
    }

    fn since(&self) -> Opset {
        Opset::CoreML5
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::required("x"),
                Param::required("transform_matrix"),
                Param::required("output_height"),
                Param::required("output_width"),
                Param::required("sampling_mode"),
                Param::required("padding_mode"),
                Param::required("padding_value"),
                Param::required("coordinates_mode"),
                Param::required("align_corners"),
            ]
        }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        expect_float(x, X)?;
        expect_float(x, TRANSFORM_MATRIX)?;
        for (param, only) in
            [(SAMPLING_MODE, "bilinear"), (PADDING_MODE, "constant"), (COORDINATES_MODE, "normalized_minus_one_to_one")]
        {
            if !x.text_or(param, only)?.eq_ignore_ascii_case(only) {
                return Err(x.bad(param, only, x.text_or(param, only)?));
            }
        }
        if x.f32(PADDING_VALUE)? != 0.0 || !x.bool_or(ALIGN_CORNERS, true)? {
            return Err(OpError::Unsupported { what: "padding other than 0, or corners not aligned,".to_owned() });
        }
        let mut ty = x.ty(X);
        let matrix = x.shape(TRANSFORM_MATRIX);
        let [n, _, h, w] = &mut ty.shape[..] else { return Err(x.bad(X, "rank 4", ty)) };
        if *matrix != [*n, 6] && *matrix != [1, 6] {
            return Err(x.bad(TRANSFORM_MATRIX, format!("({n} or 1, 6)"), matrix));
        }
        *h = dims::extent(x, OUTPUT_HEIGHT, x.i32(OUTPUT_HEIGHT)?)?;
        *w = dims::extent(x, OUTPUT_WIDTH, x.i32(OUTPUT_WIDTH)?)?;
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let &[_, c, height, width] = x.shape(X) else { return Err(x.bad(X, "rank 4", x.shape(X))) };
        if out[0].shape.contains(&0) {
            return Ok(());
        }
        let (rows, columns) = (out[0].shape[2], out[0].shape[3]);
        let (images, matrices) = (x.f32s(X)?, x.f32s(TRANSFORM_MATRIX)?);
        // From -1 to 1; a single point lies in the middle.
        let spread = |i: usize, n: usize| if n == 1 { 0.0 } else { 2.0 * i as f32 / (n as f32 - 1.0) - 1.0 };
        for (i, out) in out[0].f32s()?.chunks_exact_mut(rows * columns).enumerate() {
            let pixels = &images[i * height * width..(i + 1) * height * width];
            let plane = Plane { pixels, height, width, outside: Outside::Constant(0.0) };
            let at = if matrices.len() == 6 { 0 } else { i / c * 6 };
            let &[a0, a1, a2, b0, b1, b2] = &matrices[at..at + 6] else { continue };
            for (j, o) in out.iter_mut().enumerate() {
                let (u, v) = (spread(j % columns, columns), spread(j / columns, rows));
                let (px, py) = (a0 * u + a1 * v + a2, b0 * u + b1 * v + b2);
                let pixel = |p: f32, n: usize| (p + 1.0) / 2.0 * (n as f32 - 1.0);
                *o = plane.bilinear(pixel(py, height), pixel(px, width));
            }
        }
        Ok(())
    }

    fn cases(&self) -> Vec<Case> {
        let x = Tensor::floats(DType::F32, &[1, 1, 2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let case = |name, matrix: [f32; 6], [h, w]: [i32; 2], expect: &[f32]| {
            Case::new(name)
                .input("x", x.clone())
                .input("transform_matrix", Tensor::floats(DType::F32, &[1, 6], &matrix))
                .constant("output_height", h)
                .constant("output_width", w)
                .constant("sampling_mode", "bilinear")
                .constant("padding_mode", "constant")
                .constant("padding_value", 0.0)
                .constant("coordinates_mode", "normalized_minus_one_to_one")
                .constant("align_corners", true)
                .expect(Tensor::floats(DType::F32, &[1, 1, h as usize, w as usize], expect))
        };
        vec![
            case("as it is", [1.0, 0.0, 0.0, 0.0, 1.0, 0.0], [2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
            case("mirrored", [-1.0, 0.0, 0.0, 0.0, 1.0, 0.0], [2, 3], &[3.0, 2.0, 1.0, 6.0, 5.0, 4.0]),
            case("transposed", [0.0, 1.0, 0.0, 1.0, 0.0, 0.0], [3, 2], &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]),
            case("moved, zero outside", [1.0, 0.0, 1.0, 0.0, 1.0, 0.0], [2, 3], &[2.0, 3.0, 0.0, 5.0, 6.0, 0.0]),
            case("larger", [1.0, 0.0, 0.0, 0.0, 1.0, 0.0], [3, 2], &[1.0, 3.0, 2.5, 4.5, 4.0, 6.0]),
        ]
    }
}
