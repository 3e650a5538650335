//! `reverse`: the elements in opposite order along `axes`, or along every axis.

use smallvec::smallvec;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::dims;
use crate::ops::support::slicing::{Range, Ranges, nest};
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct Reverse;

const X: usize = 0;
const AXES: usize = 1;

/// The axes, checked.
fn axes(x: &dyn Operands) -> Result<dims::Axes, OpError> {
    let rank = x.shape(X).len();
    if x.has(AXES) { dims::axes(x, AXES, rank) } else { Ok((0..rank).collect()) }
}

impl Op for Reverse {
    fn name(&self) -> &'static str {
        "reverse"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::optional("axes")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        axes(x)?;
        Ok(smallvec![dims::numbers(x, X)?])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let axes = axes(x)?;
        let ranges: Ranges = (x.shape(X).iter().enumerate())
            .map(|(i, &count)| match axes.contains(&i) {
                true => Range { first: count.saturating_sub(1), step: -1, count, squeezed: false },
                false => Range { first: 0, step: 1, count, squeezed: false },
            })
            .collect();
        nest(x.shape(X), &ranges, true).copy(x.data(X)?, &mut out[0].data)
    }

    fn cases(&self) -> Vec<Case> {
        let x = Tensor::floats(DType::F16, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let case = |name, axes: &[i32], expect: [f32; 6]| {
            Case::new(name).input("x", x.clone()).constant("axes", axes).expect(Tensor::floats(
                DType::F16,
                &[2, 3],
                &expect,
            ))
        };
        vec![
            case("along the first axis", &[0], [4.0, 5.0, 6.0, 1.0, 2.0, 3.0]),
            case("along the last axis", &[-1], [3.0, 2.0, 1.0, 6.0, 5.0, 4.0]),
            case("along both", &[1, 0], [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]),
            Case::new("by default along every axis")
                .input("x", Tensor::ints(DType::I32, &[2, 2], &[1, 2, 3, 4]))
                .expect(Tensor::ints(DType::I32, &[2, 2], &[4, 3, 2, 1])),
        ]
    }
}
