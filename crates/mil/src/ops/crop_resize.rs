//! `crop_resize`: boxes of images, each resized to `target_height` × `target_width` with pixels mixed by nearness. `boxes` (N, 4)
//! with `box_indices` (N), by default 0, 1, …, give (N, C, height, width). Before iOS 17, `roi` (N, 1, 4, 1, 1) gives every box of
//! every image, (N, B, C, …); (N, 1, 5, 1, 1) holds the image's index first and gives (N, 1, C, …). Points outside the image are
//! `pad_value`.

use smallvec::smallvec;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::dims;
use crate::ops::support::elementwise::expect_float;
use crate::ops::support::resizing::Grid;
use crate::ops::support::sampling::{Outside, Plane};
use crate::tensor::{Data, Tensor};
use crate::types::{Class, DType, Opset, Shape};

pub(super) struct CropResize;

const X: usize = 0;
const ROI: usize = 1;
const BOXES: usize = 2;
const BOX_INDICES: usize = 3;
const TARGET_HEIGHT: usize = 4;
const TARGET_WIDTH: usize = 5;
const NORMALIZED_COORDINATES: usize = 6;
const SPATIAL_SCALE: usize = 7;
const BOX_COORDINATE_MODE: usize = 8;
const SAMPLING_MODE: usize = 9;
const PAD_VALUE: usize = 10;

/// How the four numbers of a box are read.
#[derive(Clone, Copy)]
struct Mode {
    center: bool,
    width_first: bool,
}

impl Mode {
    fn new(x: &dyn Operands) -> Result<Self, OpError> {
        let (center, width_first) = match x.text_or(BOX_COORDINATE_MODE, "CORNERS_HEIGHT_FIRST")? {
            "CORNERS_HEIGHT_FIRST" => (false, false),
            "CORNERS_WIDTH_FIRST" => (false, true),
            "CENTER_SIZE_HEIGHT_FIRST" => (true, false),
            "CENTER_SIZE_WIDTH_FIRST" => (true, true),
            other => {
                return Err(x.bad(BOX_COORDINATE_MODE, "corners or center and size, height or width first", other));
            }
        };
        Ok(Self { center, width_first })
    }

    /// First and last coordinate along height and along width.
    fn spans(self, [a, b, c, d]: [f64; 4]) -> [[f64; 2]; 2] {
        let span = |p: f64, q: f64| if self.center { [p - q / 2.0, p + q / 2.0] } else { [p, q] };
        let (first, second) = (span(a, c), span(b, d));
        if self.width_first { [second, first] } else { [first, second] }
    }
}

/// Where boxes come from.
struct Boxes {
    param: usize,
    count: usize,
    /// Numbers of one box, the index of its image included.
    size: usize,
    /// Images that each box is cut from, and whether they are all.
    images: usize,
    all: bool,
}

impl Boxes {
    fn new(x: &dyn Operands) -> Result<Self, OpError> {
        let &[images, ..] = x.shape(X) else { return Err(x.bad(X, "rank 4", x.shape(X))) };
        match (x.has(ROI), x.has(BOXES)) {
            (true, false) => match *x.shape(ROI) {
                [count, 1, 4, 1, 1] => Ok(Self { param: ROI, count, size: 4, images, all: true }),
                [count, 1, 5, 1, 1] => Ok(Self { param: ROI, count, size: 5, images: 1, all: false }),
                _ => Err(x.bad(ROI, "(N, 1, 4 or 5, 1, 1)", x.shape(ROI))),
            },
            (false, true) => match *x.shape(BOXES) {
                [count, 4] if !x.has(BOX_INDICES) && count > images => {
                    Err(x.bad(BOX_INDICES, format!("indices, for {count} boxes of {images} images"), "none"))
                }
                [count, 4] => Ok(Self { param: BOXES, count, size: 4, images: 1, all: false }),
                _ => Err(x.bad(BOXES, "(N, 4)", x.shape(BOXES))),
            },
            _ => Err(OpError::mismatch("either roi or boxes", "both or neither")),
        }
    }

    /// The image that box `b` is cut from as its `i`th.
    fn image(&self, x: &dyn Operands, b: usize, i: usize) -> Result<usize, OpError> {
        let index = if self.all {
            return Ok(i);
        } else if self.size == 5 {
            x.f32s(ROI)?[b * 5] as i64
        } else if x.has(BOX_INDICES) {
            i64::from(x.i32s(BOX_INDICES)?[b])
        } else {
            b as i64
        };
        let images = x.shape(X)[0];
        usize::try_from(index)
            .ok()
            .filter(|&i| i < images)
            .ok_or_else(|| x.bad(self.param, format!("indices of {images} images"), index))
    }

    /// The four numbers of box `b`.
    fn numbers(&self, x: &dyn Operands, b: usize) -> Result<[f64; 4], OpError> {
        let at = (b + 1) * self.size - 4;
        let data = x.data(self.param)?;
        Ok(std::array::from_fn(|i| match data {
            Data::F32(v) => f64::from(v[at + i]),
            Data::I32(v) => f64::from(v[at + i]),
            Data::Bool(v) => f64::from(u8::from(v[at + i])),
        }))
    }
}

impl Op for CropResize {
    fn name(&self) -> &'static str {
        "crop_resize"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::required("x"),
                Param::optional("roi"),
                Param::optional("boxes"),
                Param::optional("box_indices"),
                Param::optional("target_height"),
                Param::optional("target_width"),
                Param::optional("normalized_coordinates"),
                Param::optional("spatial_scale"),
                Param::optional("box_coordinate_mode"),
                Param::optional("sampling_mode"),
                Param::optional("pad_value"),
            ]
        }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        expect_float(x, X)?;
        let mut ty = x.ty(X);
        let boxes = Boxes::new(x)?;
        let &[_, c, h, w] = &ty.shape[..] else { return Err(x.bad(X, "rank 4", ty)) };
        let class = x.dtype(boxes.param).class();
        if class != Class::Float && (class != Class::Int || boxes.param == ROI) {
            return Err(x.bad(boxes.param, "numbers", x.dtype(boxes.param)));
        }
        if x.has(BOX_INDICES) && (x.shape(BOX_INDICES) != [boxes.count] || !x.dtype(BOX_INDICES).is_int()) {
            return Err(x.bad(BOX_INDICES, format!("{} integers, one per box", boxes.count), x.ty(BOX_INDICES)));
        }
        if h == 0 || w == 0 {
            return Err(x.bad(X, "images that are not empty", ty));
        }
        Mode::new(x)?;
        Grid::new(x, SAMPLING_MODE)?;
        let mut shape: Shape = smallvec![boxes.count];
        if boxes.param == ROI {
            shape.push(boxes.images);
        }
        shape.push(c);
        shape.push(dims::extent(x, TARGET_HEIGHT, x.i32_or(TARGET_HEIGHT, 1)?)?);
        shape.push(dims::extent(x, TARGET_WIDTH, x.i32_or(TARGET_WIDTH, 1)?)?);
        ty.shape = shape;
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let (&[_, c, height, width], &[.., rows, columns]) = (x.shape(X), out[0].shape) else {
            return Err(x.bad(X, "rank 4", x.shape(X)));
        };
        if out[0].shape.contains(&0) {
            return Ok(());
        }
        let (boxes, mode, grid) = (Boxes::new(x)?, Mode::new(x)?, Grid::new(x, SAMPLING_MODE)?);
        let scale = f64::from(x.f32_or(SPATIAL_SCALE, 1.0)?);
        let pad = x.f32_or(PAD_VALUE, 0.0)?;
        let extents = [height, width].map(|n| n as f64 - 1.0);
        let normalized = x.bool_or(NORMALIZED_COORDINATES, false)?;
        let pixels = x.f32s(X)?;
        for (i, out) in out[0].f32s()?.chunks_exact_mut(rows * columns).enumerate() {
            let (b, image, channel) = (i / (c * boxes.images), i / c % boxes.images, i % c);
            let start = (boxes.image(x, b, image)? * c + channel) * height * width;
            let pixels = &pixels[start..start + height * width];
            let plane = Plane { pixels, height, width, outside: Outside::Border };
            let spans = mode.spans(boxes.numbers(x, b)?);
            let point = |axis: usize, i: usize, n: usize| {
                let unit = if normalized { scale * extents[axis] } else { scale };
                let [first, last] = spans[axis].map(|p| p * unit);
                let at = first + grid.point(i, n, last - first + 1.0);
                (0.0..=extents[axis]).contains(&at).then_some(at as f32)
            };
            for (j, o) in out.iter_mut().enumerate() {
                *o = match (point(0, j / columns, rows), point(1, j % columns, columns)) {
                    (Some(y), Some(x)) => plane.bilinear(y, x),
                    _ => pad,
                };
            }
        }
        Ok(())
    }

    fn cases(&self) -> Vec<Case> {
        let values: Vec<f32> = (0..16).map(|v| v as f32).collect();
        let x = Tensor::floats(DType::F32, &[1, 1, 4, 4], &values);
        let two = Tensor::floats(DType::F32, &[2, 1, 2, 2], &[0.0, 1.0, 2.0, 3.0, 10.0, 11.0, 12.0, 13.0]);
        let f = |shape: &[usize], v: &[f32]| Tensor::floats(DType::F32, shape, v);
        let corners = |name, expect: &[f32]| {
            Case::new(name)
                .input("x", x.clone())
                .constant("target_height", 2)
                .constant("target_width", 2)
                .constant("sampling_mode", "STRICT_ALIGN_CORNERS")
                .expect(f(&[1, 1, 2, 2], expect))
        };
        vec![
            corners("corners of a box meet those of the result", &[5.0, 7.0, 13.0, 15.0])
                .input("boxes", f(&[1, 4], &[1.0, 1.0, 3.0, 3.0])),
            corners("width first, scaled, whole numbers", &[1.0, 2.0, 9.0, 10.0])
                .input("boxes", Tensor::ints(DType::U16, &[1, 4], &[2, 0, 4, 4]))
                .constant("spatial_scale", 0.5)
                .constant("box_coordinate_mode", "CORNERS_WIDTH_FIRST"),
            corners("center and size, normalized", &[5.0, 6.0, 9.0, 10.0])
                .input("boxes", f(&[1, 4], &[0.5, 0.5, 1.0 / 3.0, 1.0 / 3.0]))
                .constant("normalized_coordinates", true)
                .constant("box_coordinate_mode", "CENTER_SIZE_HEIGHT_FIRST")
                .within(1e-5),
            corners("points outside are padded", &[-7.0, -7.0, -7.0, 0.0])
                .input("boxes", f(&[1, 4], &[-1.0, -1.0, 0.0, 0.0]))
                .constant("pad_value", -7.0),
            Case::new("boxes of other images, one point by default")
                .input("x", two.clone())
                .input("boxes", f(&[3, 4], &[0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0]))
                .input("box_indices", Tensor::ints(DType::I32, &[3], &[1, 0, 1]))
                .expect(f(&[3, 1, 1, 1], &[10.0, 3.0, 11.0])),
            Case::new("regions of every image")
                .input("x", two.clone())
                .input("roi", f(&[1, 1, 4, 1, 1], &[1.0, 0.0, 1.0, 0.0]))
                .expect(f(&[1, 2, 1, 1, 1], &[2.0, 12.0])),
            Case::new("regions of one image each, in the middle of bins")
                .input("x", two)
                .input("roi", f(&[1, 1, 5, 1, 1], &[1.0, 0.0, 0.0, 1.0, 1.0]))
                .constant("sampling_mode", "OFFSET_CORNERS")
                .expect(f(&[1, 1, 1, 1, 1], &[11.5])),
        ]
    }
}
