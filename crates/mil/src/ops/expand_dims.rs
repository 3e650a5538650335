//! `expand_dims`: axes of extent 1 are inserted, so that they stand at `axes` of the result.

use smallvec::smallvec;

use crate::case::Case;
use crate::layout::Layout;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::dims;
use crate::tensor::Tensor;
use crate::types::{DType, Opset, Shape};

pub(super) struct ExpandDims;

const X: usize = 0;
const AXES: usize = 1;

impl Op for ExpandDims {
    fn name(&self) -> &'static str {
        "expand_dims"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::required("axes")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let mut ty = dims::numbers(x, X)?;
        let rank = ty.shape.len() + x.i32s(AXES)?.len();
        let axes = dims::axes(x, AXES, rank)?;
        let mut kept = ty.shape.iter();
        let shape: Option<Shape> =
            (0..rank).map(|i| if axes.contains(&i) { Some(1) } else { kept.next().copied() }).collect();
        ty.shape = shape.expect("distinct axes leave as many places as x has axes");
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        dims::copy(x, X, &mut out[0])
    }

    fn view(&self, x: &dyn Operands, layout: &Layout) -> Option<Layout> {
        layout.reshaped(&self.infer(x).ok()?[0].shape)
    }

    fn cases(&self) -> Vec<Case> {
        let x = Tensor::floats(DType::F16, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let case = |name, axes: &[i32], shape: &[usize]| {
            Case::new(name).input("x", x.clone()).constant("axes", axes).expect(Tensor::floats(
                DType::F16,
                shape,
                &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            ))
        };
        vec![
            case("in front", &[0], &[1, 2, 3]),
            case("negative axes count from the end of the result", &[-1, -3], &[2, 1, 3, 1]),
            case("in any order", &[3, 0], &[1, 2, 3, 1]),
            Case::new("a scalar becomes a vector")
                .input("x", Tensor::ints(DType::I32, &[], &[7]))
                .constant("axes", [0])
                .expect(Tensor::ints(DType::I32, &[1], &[7])),
        ]
    }
}
