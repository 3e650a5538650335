//! `resample`: `x` (n, C, H, W) at the points `coordinates` (n, H₂, W₂, 2), each (x, y). `coordinates_mode` says what they count:
//! pixels, or the extent from -1 to 1 or from 0 to 1: between the middles of the border pixels with `align_corners`, else between
//! their outer edges.

use smallvec::smallvec;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::dims::choice;
use crate::ops::support::elementwise::expect_float;
use crate::ops::support::sampling::{Outside, Plane};
use crate::tensor::{Data, Tensor};
use crate::types::{Class, DType, Opset};

pub(super) struct Resample;

const X: usize = 0;
const COORDINATES: usize = 1;
const SAMPLING_MODE: usize = 2;
const PADDING_MODE: usize = 3;
const PADDING_VALUE: usize = 4;
const COORDINATES_MODE: usize = 5;
const ALIGN_CORNERS: usize = 6;

/// What coordinates count.
#[derive(Clone, Copy)]
enum Unit {
    Pixels,
    /// From `low` to 1, between middles or outer edges of the border pixels.
    Extent {
        low: f32,
        middles: bool,
    },
}

impl Unit {
    fn new(x: &dyn Operands) -> Result<Self, OpError> {
        let middles = x.bool_or(ALIGN_CORNERS, false)?;
        let all = [Unit::Pixels, Unit::Extent { low: -1.0, middles }, Unit::Extent { low: 0.0, middles }];
        let names = ["unnormalized", "normalized_minus_one_to_one", "normalized_zero_to_one"];
        Ok(all[choice(x, COORDINATES_MODE, &names)?])
    }

    /// The pixel that coordinate `c` of an axis of `n` pixels means.
    fn pixel(self, c: f32, n: usize) -> f32 {
        match self {
            Unit::Pixels => c,
            Unit::Extent { low, middles: true } => (c - low) / (1.0 - low) * (n as f32 - 1.0),
            Unit::Extent { low, middles: false } => (c - low) / (1.0 - low) * n as f32 - 0.5,
        }
    }
}

/// Whether points take the nearest pixel.
fn nearest(x: &dyn Operands) -> Result<bool, OpError> {
    Ok(choice(x, SAMPLING_MODE, &["bilinear", "nearest"])? == 1)
}

impl Op for Resample {
    fn name(&self) -> &'static str {
        "resample"
    }

    fn since(&self) -> Opset {
        Opset::CoreML5
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::required("x"),
                Param::required("coordinates"),
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
        let mut ty = x.ty(X);
        nearest(x)?;
        Unit::new(x)?;
        Outside::new(x, PADDING_MODE, PADDING_VALUE)?;
        if !matches!(x.dtype(COORDINATES).class(), Class::Float | Class::Int) {
            return Err(x.bad(COORDINATES, "numbers", x.dtype(COORDINATES)));
        }
        match (&mut ty.shape[..], x.shape(COORDINATES)) {
            ([n, _, h, w], &[m, h2, w2, 2]) if *n == m && ((*h > 0 && *w > 0) || h2 == 0 || w2 == 0) => {
                (*h, *w) = (h2, w2)
            }
            _ => {
                return Err(x.bad(
                    COORDINATES,
                    format!("(n, H, W, 2) for x (n, C, …), here {ty}"),
                    x.shape(COORDINATES),
                ));
            }
        }
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let &[_, c, height, width] = x.shape(X) else { return Err(x.bad(X, "rank 4", x.shape(X))) };
        if out[0].shape.contains(&0) {
            return Ok(());
        }
        let (nearest, unit) = (nearest(x)?, Unit::new(x)?);
        let outside = Outside::new(x, PADDING_MODE, PADDING_VALUE)?;
        let (images, points) = (x.f32s(X)?, out[0].shape[2] * out[0].shape[3]);
        let coordinates = x.data(COORDINATES)?;
        let coordinate = |i: usize| match coordinates {
            Data::F32(v) => v[i],
            Data::I32(v) => v[i] as f32,
            Data::Bool(v) => f32::from(u8::from(v[i])),
        };
        for (i, out) in out[0].f32s()?.chunks_exact_mut(points).enumerate() {
            let pixels = &images[i * height * width..(i + 1) * height * width];
            let plane = Plane { pixels, height, width, outside };
            for (j, o) in out.iter_mut().enumerate() {
                let at = (i / c * points + j) * 2;
                let (px, py) = (unit.pixel(coordinate(at), width), unit.pixel(coordinate(at + 1), height));
                *o = if nearest { plane.nearest(py, px) } else { plane.bilinear(py, px) };
            }
        }
        Ok(())
    }

    fn cases(&self) -> Vec<Case> {
        let x = Tensor::floats(DType::F16, &[1, 1, 2, 2], &[0.0, 10.0, 20.0, 30.0]);
        let case = |name, points: &[f32], [sampling, padding, mode]: [&str; 3], align: bool, expect: &[f32]| {
            Case::new(name)
                .input("x", x.clone())
                .input("coordinates", Tensor::floats(DType::F16, &[1, 1, expect.len(), 2], points))
                .constant("sampling_mode", sampling)
                .constant("padding_mode", padding)
                .constant("padding_value", half::f16::from_f32(6.0))
                .constant("coordinates_mode", mode)
                .constant("align_corners", align)
                .expect(Tensor::floats(DType::F16, &[1, 1, 1, expect.len()], expect))
        };
        let bilinear = |padding| ["bilinear", padding, "unnormalized"];
        vec![
            case("pixels, x before y", &[1.0, 0.0, 0.5, 0.5], bilinear("constant"), false, &[10.0, 15.0]),
            case("a constant outside", &[-0.5, 0.0, 0.0, 3.0], bilinear("constant"), false, &[3.0, 6.0]),
            case("the border outside", &[-0.5, 0.0, 0.0, 3.0], bilinear("border"), false, &[0.0, 20.0]),
            case(
                "mirrored at the middles of pixels",
                &[-0.5, 0.0, 2.5, 1.0],
                bilinear("reflection"),
                true,
                &[5.0, 25.0],
            ),
            case("mirrored at the edges of pixels", &[-1.0, 0.0, 2.0, 0.0], bilinear("symmetric"), false, &[0.0, 10.0]),
            case(
                "from -1 to 1 between middles",
                &[-1.0, -1.0, 1.0, 1.0, 0.0, 0.0],
                ["bilinear", "constant", "normalized_minus_one_to_one"],
                true,
                &[0.0, 30.0, 15.0],
            ),
            case(
                "from -1 to 1 between edges",
                &[-0.5, -0.5, 0.5, 0.5],
                ["bilinear", "constant", "normalized_minus_one_to_one"],
                false,
                &[0.0, 30.0],
            ),
            case(
                "from 0 to 1, the nearest pixel",
                &[0.2, 0.9, 0.9, 0.2],
                ["nearest", "border", "normalized_zero_to_one"],
                true,
                &[20.0, 10.0],
            ),
            Case::new("coordinates of integers, two channels")
                .input("x", Tensor::floats(DType::F32, &[1, 2, 1, 2], &[1.0, 2.0, 3.0, 4.0]))
                .input("coordinates", Tensor::ints(DType::I32, &[1, 1, 1, 2], &[1, 0]))
                .constant("sampling_mode", "bilinear")
                .constant("padding_mode", "constant")
                .constant("padding_value", 0.0)
                .constant("coordinates_mode", "unnormalized")
                .constant("align_corners", true)
                .expect(Tensor::floats(DType::F32, &[1, 2, 1, 1], &[2.0, 4.0])),
        ]
    }
}
