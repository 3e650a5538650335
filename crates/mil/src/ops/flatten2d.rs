//! `flatten2d`: `x` as a matrix: the axes before `axis` make its rows, the others its columns.

use smallvec::smallvec;

use crate::case::Case;
use crate::layout::Layout;
use crate::op::{Op, OpError, Operands, Out, Param, Results, normalize_axis};
use crate::ops::support::dims;
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct Flatten2d;

const X: usize = 0;
const AXIS: usize = 1;

impl Op for Flatten2d {
    fn name(&self) -> &'static str {
        "flatten2d"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::optional("axis")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let mut ty = dims::numbers(x, X)?;
        let rank = ty.shape.len();
        let axis = x.i32_or(AXIS, 1)?;
        let split = if usize::try_from(axis) == Ok(rank) { Some(rank) } else { normalize_axis(axis, rank) };
        let split = split.ok_or_else(|| x.bad(AXIS, format!("a place among {rank} axes"), axis))?;
        ty.shape = smallvec![dims::product(&ty.shape[..split])?, dims::product(&ty.shape[split..])?];
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        dims::copy(x, X, &mut out[0])
    }

    fn view(&self, x: &dyn Operands, layout: &Layout) -> Option<Layout> {
        layout.reshaped(&self.infer(x).ok()?[0].shape)
    }

    fn cases(&self) -> Vec<Case> {
        let values: Vec<i32> = (0..12).collect();
        let case = |name, from: &[usize], to: [usize; 2]| {
            Case::new(name).input("x", Tensor::ints(DType::I32, from, &values)).expect(Tensor::ints(
                DType::I32,
                &to,
                &values,
            ))
        };
        vec![
            case("by default, rows are the first axis", &[2, 3, 2], [2, 6]),
            case("a negative axis counts from the end", &[2, 3, 2], [6, 2]).constant("axis", -1),
            case("all axes may be rows", &[12], [12, 1]).constant("axis", 1),
            case("all axes may be columns", &[12], [1, 12]).constant("axis", -1),
        ]
    }
}
