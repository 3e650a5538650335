//! `crop`: pixels taken off both ends of the last two axes: `crop_height` and `crop_width` hold a pair (before, behind).

use smallvec::smallvec;

use crate::case::Case;
use crate::layout::Layout;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::dims;
use crate::ops::support::slicing::{Range, Ranges, nest, view};
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct Crop;

const X: usize = 0;
const CROP_HEIGHT: usize = 1;

/// What stays along each axis.
fn ranges(x: &dyn Operands, shape: &[usize]) -> Result<Ranges, OpError> {
    let mut ranges: Ranges = shape.iter().map(|&count| Range { first: 0, step: 1, count, squeezed: false }).collect();
    if shape.len() < 3 {
        return Err(x.bad(X, "rank 3 or more", shape));
    }
    for (i, r) in ranges[shape.len() - 2..].iter_mut().enumerate() {
        let param = CROP_HEIGHT + i;
        let &[before, behind] = x.i32s(param)? else { return Err(x.bad(param, "a pair", x.i32s(param)?)) };
        r.first = dims::extent(x, param, before)?;
        let cut = dims::sum(&[r.first, dims::extent(x, param, behind)?])?;
        r.count = r.count.checked_sub(cut).ok_or_else(|| x.bad(param, format!("at most {} in all", r.count), cut))?;
    }
    Ok(ranges)
}

impl Op for Crop {
    fn name(&self) -> &'static str {
        "crop"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::required("crop_height"), Param::required("crop_width")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let mut ty = dims::numbers(x, X)?;
        ty.shape = ranges(x, &ty.shape)?.iter().map(|r| r.count).collect();
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        nest(x.shape(X), &ranges(x, x.shape(X))?, true).copy(x.data(X)?, &mut out[0].data)
    }

    fn view(&self, x: &dyn Operands, layout: &Layout) -> Option<Layout> {
        view(&ranges(x, &layout.shape).ok()?, layout)
    }

    fn cases(&self) -> Vec<Case> {
        let values: Vec<f32> = (0..12).map(|v| v as f32).collect();
        vec![
            Case::new("different amounts on each side")
                .input("x", Tensor::floats(DType::F16, &[1, 3, 4], &values))
                .constant("crop_height", [1, 0])
                .constant("crop_width", [1, 2])
                .expect(Tensor::floats(DType::F16, &[1, 2, 1], &[5.0, 9.0])),
        ]
    }
}
