//! `resize`: the last `resized_dims` axes get the extents at the end of `shape`, where 0 keeps an extent. The points are spread
//! as `sampling_mode` says (see `support::resizing`), and take the nearest element or mix those around them.

use smallvec::smallvec;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::dims;
use crate::ops::support::resizing::{Grid, expect_points, resize};
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct Resize;

const X: usize = 0;
const SHAPE: usize = 1;
const RESIZED_DIMS: usize = 2;
const INTERPOLATION_MODE: usize = 3;
const SAMPLING_MODE: usize = 4;

/// Whether points take the nearest element.
fn nearest(x: &dyn Operands) -> Result<bool, OpError> {
    match x.text_or(INTERPOLATION_MODE, "LINEAR")? {
        "LINEAR" => Ok(false),
        "NEAREST_NEIGHBOR" => Ok(true),
        other => Err(x.bad(INTERPOLATION_MODE, "LINEAR or NEAREST_NEIGHBOR", other)),
    }
}

impl Op for Resize {
    fn name(&self) -> &'static str {
        "resize"
    }

    fn since(&self) -> Opset {
        Opset::CoreML7
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::required("x"),
                Param::required("shape"),
                Param::required("resized_dims"),
                Param::optional("interpolation_mode"),
                Param::optional("sampling_mode"),
            ]
        }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let mut ty = dims::numbers(x, X)?;
        if !nearest(x)? && !ty.dtype.is_float() {
            return Err(OpError::Unsupported { what: format!("linear interpolation of {}", ty.dtype) });
        }
        Grid::new(x, SAMPLING_MODE)?;
        let shape = x.i32s(SHAPE)?;
        let axes = dims::extent(x, RESIZED_DIMS, x.i32(RESIZED_DIMS)?)?;
        if shape.len() > ty.shape.len() || axes > shape.len() {
            return Err(x.bad(
                RESIZED_DIMS,
                format!("at most the {} extents of shape, of rank at most x's", shape.len()),
                axes,
            ));
        }
        let kept = ty.shape.len() - axes;
        for (n, &to) in ty.shape[kept..].iter_mut().zip(&shape[shape.len() - axes..]) {
            if to != 0 {
                let to = dims::extent(x, SHAPE, to)?;
                expect_points(x, *n, to)?;
                *n = to;
            }
        }
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let axes = dims::extent(x, RESIZED_DIMS, x.i32(RESIZED_DIMS)?)?;
        resize(x, &mut out[0], axes, Grid::new(x, SAMPLING_MODE)?, nearest(x)?)
    }

    fn cases(&self) -> Vec<Case> {
        let x = Tensor::floats(DType::F16, &[1, 2, 2], &[0.0, 2.0, 4.0, 6.0]);
        let count = |n: i64| crate::Const::ints(DType::U32, &[], &[n]);
        vec![
            Case::new("linear by default, 0 keeps an extent")
                .input("x", x.clone())
                .constant("shape", [5, 0, 4])
                .constant("resized_dims", count(2))
                .expect(Tensor::floats(DType::F16, &[1, 2, 4], &[0.0, 1.0, 2.0, 2.0, 4.0, 5.0, 6.0, 6.0])),
            Case::new("areas, the extents known at run time")
                .input("x", x.clone())
                .input("shape", Tensor::ints(DType::I32, &[2], &[4, 1]))
                .constant("resized_dims", count(2))
                .constant("interpolation_mode", "LINEAR")
                .constant("sampling_mode", "UNALIGN_CORNERS")
                .expect(Tensor::floats(DType::F16, &[1, 4, 1], &[1.0, 2.0, 4.0, 5.0])),
            Case::new("three axes")
                .input("x", Tensor::floats(DType::F16, &[2, 1, 2], &[0.0, 2.0, 4.0, 6.0]))
                .constant("shape", [3, 1, 3])
                .constant("resized_dims", count(3))
                .constant("sampling_mode", "ALIGN_CORNERS")
                .expect(Tensor::floats(DType::F16, &[3, 1, 3], &[0.0, 1.0, 2.0, 2.0, 3.0, 4.0, 4.0, 5.0, 6.0])),
            Case::new("the nearest element, of integers")
                .input("x", Tensor::ints(DType::I32, &[3], &[1, 2, 3]))
                .constant("shape", [5])
                .constant("resized_dims", count(1))
                .constant("interpolation_mode", "NEAREST_NEIGHBOR")
                .expect(Tensor::ints(DType::I32, &[5], &[1, 1, 2, 2, 3])),
            Case::new("the nearest element of areas")
                .input("x", Tensor::ints(DType::I32, &[3], &[1, 2, 3]))
                .constant("shape", [2])
                .constant("resized_dims", count(1))
                .constant("interpolation_mode", "NEAREST_NEIGHBOR")
                .constant("sampling_mode", "UNALIGN_CORNERS")
                .expect(Tensor::ints(DType::I32, &[2], &[1, 3])),
        ]
    }
}
