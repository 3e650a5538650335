//! `squeeze`: axes of extent 1 leave. Axes of another extent that `axes` names stay, as in PyTorch; without `axes`, all of
//! extent 1 leave.

use smallvec::smallvec;

use crate::case::Case;
use crate::layout::Layout;
use crate::op::{Op, OpError, Operands, Out, Param, Results, normalize_axis};
use crate::ops::support::dims;
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct Squeeze;

const X: usize = 0;
const AXES: usize = 1;

impl Op for Squeeze {
    fn name(&self) -> &'static str {
        "squeeze"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::optional("axes")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let mut ty = dims::numbers(x, X)?;
        let rank = ty.shape.len();
        let axes = if x.has(AXES) { Some(x.i32s(AXES)?) } else { None };
        if let Some(&out) = axes.and_then(|a| a.iter().find(|&&a| normalize_axis(a, rank).is_none())) {
            return Err(x.bad(AXES, format!("axes of a tensor of rank {rank}"), out));
        }
        let named = |i| axes.is_none_or(|a| a.iter().any(|&a| normalize_axis(a, rank) == Some(i)));
        let mut i = 0;
        ty.shape.retain(|n| {
            i += 1;
            *n != 1 || !named(i - 1)
        });
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        dims::copy(x, X, &mut out[0])
    }

    fn view(&self, x: &dyn Operands, layout: &Layout) -> Option<Layout> {
        layout.reshaped(&self.infer(x).ok()?[0].shape)
    }

    fn cases(&self) -> Vec<Case> {
        let x = Tensor::floats(DType::F16, &[1, 2, 1], &[1.0, 2.0]);
        let case = |name, axes: &[i32], shape: &[usize]| {
            Case::new(name).input("x", x.clone()).constant("axes", axes).expect(Tensor::floats(
                DType::F16,
                shape,
                &[1.0, 2.0],
            ))
        };
        vec![
            case("one axis", &[0], &[2, 1]),
            case("negative axes count from the end", &[-1], &[1, 2]),
            case("an axis of another extent stays", &[0, 1], &[2, 1]),
            Case::new("without axes, all of extent 1").input("x", x.clone()).expect(Tensor::floats(
                DType::F16,
                &[2],
                &[1.0, 2.0],
            )),
            Case::new("to a scalar")
                .input("x", Tensor::ints(DType::I32, &[1], &[7]))
                .constant("axes", [0])
                .expect(Tensor::ints(DType::I32, &[], &[7])),
        ]
    }
}
