//! `reshape_like`: the same elements under a shape put together from parts of other tensors' shapes: of each
//! `ref_tensors[i]` the axes `begins[i]..ends[i]`, or all from `begins[i]` on where `end_masks[i]` is true.

use smallvec::smallvec;

use crate::case::Case;
use crate::layout::Layout;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::dims;
use crate::tensor::{Data, Tensor};
use crate::types::{DType, Opset, Shape};

pub(super) struct ReshapeLike;

const X: usize = 0;
const REF_TENSORS: usize = 1;
const BEGINS: usize = 2;
const ENDS: usize = 3;
const END_MASKS: usize = 4;

/// The one integer that argument `index` is.
fn int(x: &dyn Operands, param: usize, index: usize) -> Result<i32, OpError> {
    match x.i32s_at(param, index)? {
        [v] => Ok(*v),
        other => Err(x.bad(param, "one integer each", other)),
    }
}

/// Whether argument `index` of `end_masks` is true.
fn masked(x: &dyn Operands, index: usize) -> Result<bool, OpError> {
    match x.data_at(END_MASKS, index) {
        Some(Data::Bool([v])) => Ok(*v),
        Some(other) => Err(x.bad(END_MASKS, "one truth value each", other)),
        None => Err(OpError::NeedsValue { param: x.name_of(END_MASKS) }),
    }
}

/// The place among `rank` axes that `at` names; negative ones count from the end, and those outside are clamped.
fn place(at: i32, rank: usize) -> usize {
    let away = at.unsigned_abs() as usize;
    if at < 0 { rank.saturating_sub(away) } else { away.min(rank) }
}

impl Op for ReshapeLike {
    fn name(&self) -> &'static str {
        "reshape_like"
    }

    fn since(&self) -> Opset {
        Opset::CoreML6
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::required("x"),
                Param::variadic("ref_tensors"),
                Param::variadic("begins"),
                Param::variadic("ends"),
                Param::variadic("end_masks"),
            ]
        }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let mut ty = dims::numbers(x, X)?;
        let n = x.count(REF_TENSORS);
        for param in [BEGINS, ENDS, END_MASKS] {
            if x.count(param) != n {
                return Err(x.bad(param, format!("{n} values, one per reference"), x.count(param)));
            }
        }
        let mut shape = Shape::new();
        for i in 0..n {
            let like = x.ty_at(REF_TENSORS, i).1;
            let begin = place(int(x, BEGINS, i)?, like.len());
            let end = if masked(x, i)? { like.len() } else { place(int(x, ENDS, i)?, like.len()) };
            shape.extend_from_slice(like.get(begin..end).unwrap_or(&[]));
        }
        if dims::product(&shape)? != dims::product(&ty.shape)? {
            return Err(x.bad(X, format!("as many elements as {shape:?}"), ty));
        }
        ty.shape = shape;
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        dims::copy(x, X, &mut out[0])
    }

    fn view(&self, x: &dyn Operands, layout: &Layout) -> Option<Layout> {
        layout.reshaped(&self.infer(x).ok()?[0].shape)
    }

    fn cases(&self) -> Vec<Case> {
        let values: Vec<f32> = (0..180).map(|v| v as f32).collect();
        let (a, b) = (Tensor::floats(DType::F16, &[2, 3, 1], &[0.0; 6]), Tensor::bools(&[1, 5, 6], &[true; 30]));
        let case = |name, begins: [i32; 2], ends: [i32; 2], masks: [bool; 2], shape: &[usize]| {
            Case::new(name)
                .input("x", Tensor::floats(DType::F16, &[180], &values))
                .input("ref_tensors", a.clone())
                .input("ref_tensors", b.clone())
                .constant("begins", begins[0])
                .constant("begins", begins[1])
                .constant("ends", ends[0])
                .constant("ends", ends[1])
                .constant("end_masks", masks[0])
                .constant("end_masks", masks[1])
                .expect(Tensor::floats(DType::F16, shape, &values))
        };
        vec![
            case("parts of two shapes, one to its end", [0, 1], [2, 0], [false, true], &[2, 3, 5, 6]),
            case("negative places count from the end", [-3, -2], [-1, 9], [false, false], &[2, 3, 5, 6]),
        ]
    }
}
