//! `reshape`: the same elements under another shape. In `shape` one entry may be -1: what is left. An entry 0 takes the
//! extent of `x` at the same distance from the end, or 1 if there is none.

use smallvec::smallvec;

use crate::case::Case;
use crate::layout::Layout;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::dims;
use crate::tensor::Tensor;
use crate::types::{DType, Opset, Shape};

pub(super) struct Reshape;

const X: usize = 0;
const SHAPE: usize = 1;

impl Op for Reshape {
    fn name(&self) -> &'static str {
        "reshape"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::required("shape")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let mut ty = dims::numbers(x, X)?;
        let wanted = x.i32s(SHAPE)?;
        let mut free = None;
        let mut shape = Shape::new();
        for (i, &n) in wanted.iter().enumerate() {
            shape.push(match n {
                0 => (i + ty.shape.len()).checked_sub(wanted.len()).map_or(1, |j| ty.shape[j]),
                -1 if free.replace(i).is_none() => 1,
                n => usize::try_from(n).map_err(|_| x.bad(SHAPE, "extents, at most one of them -1", wanted))?,
            });
        }
        let (have, want) = (dims::product(&ty.shape)?, dims::product(&shape)?);
        if let Some(i) = free {
            shape[i] = have.checked_div(want).unwrap_or(usize::MAX);
        }
        if shape.contains(&usize::MAX) || dims::product(&shape)? != have {
            return Err(x.bad(SHAPE, format!("a shape of {have} elements"), wanted));
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
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let x = Tensor::floats(DType::F16, &[2, 3], &values);
        let case = |name, to: &[i32], shape: &[usize]| {
            Case::new(name).input("x", x.clone()).constant("shape", to).expect(Tensor::floats(
                DType::F16,
                shape,
                &values,
            ))
        };
        vec![
            case("all extents", &[3, 2], &[3, 2]),
            case("-1 is what is left", &[1, -1, 2], &[1, 3, 2]),
            case("0 keeps the extent of the same axis", &[0, -1, 1], &[1, 6, 1]),
            case("0 counts from the end", &[1, 0, -1, 0], &[1, 1, 2, 3]),
            Case::new("a scalar becomes a vector")
                .input("x", Tensor::ints(DType::I32, &[], &[7]))
                .constant("shape", [1])
                .expect(Tensor::ints(DType::I32, &[1], &[7])),
            Case::new("to a scalar")
                .input("x", Tensor::bools(&[1, 1], &[true]))
                .constant("shape", [0i32; 0])
                .expect(Tensor::bools(&[], &[true])),
            Case::new("a shape known at run time")
                .input("x", Tensor::ints(DType::U16, &[4], &[1, 2, 3, 4]))
                .input("shape", Tensor::ints(DType::I16, &[2], &[-1, 2]))
                .expect(Tensor::ints(DType::U16, &[2, 2], &[1, 2, 3, 4])),
        ]
    }
}
