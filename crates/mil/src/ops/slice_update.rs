//! `slice_update`: `x` with `update` in place of what `begin`, `end`, `stride` and the masks select (see
//! `support::slicing`). An update that the selection does not hold exactly is an error, also where clamping at the end of
//! an axis makes the selection smaller.

use smallvec::smallvec;

use crate::case::Case;
use crate::layout::Layout;
use crate::op::{Op, OpError, Operands, Out, Param, Results, Update};
use crate::ops::support::{dims, slicing};
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct SliceUpdate;

const X: usize = 0;
const UPDATE: usize = 1;
const STRIDE: usize = 4;
const SLICE: slicing::Params = slicing::Params { begin: 2 };

impl Op for SliceUpdate {
    fn name(&self) -> &'static str {
        "slice_update"
    }

    fn since(&self) -> Opset {
        Opset::CoreML8
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::required("x"),
                Param::required("update"),
                Param::required("begin"),
                Param::required("end"),
                Param::optional("stride"),
                Param::optional("begin_mask"),
                Param::optional("end_mask"),
                Param::optional("squeeze_mask"),
            ]
        }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let ty = dims::numbers(x, X)?;
        if x.dtype(UPDATE) != ty.dtype {
            return Err(x.bad(UPDATE, format!("elements of {}", ty.dtype), x.dtype(UPDATE)));
        }
        match SLICE.result(x, &ty.shape) {
            Ok(shape) if shape[..] != *x.shape(UPDATE) => {
                Err(x.bad(UPDATE, format!("the selection's shape {shape:?}"), x.shape(UPDATE)))
            }
            // The result has the shape of `x` whatever is selected; `eval` checks the selection.
            Ok(_) | Err(OpError::NeedsValue { .. }) => Ok(smallvec![ty]),
            Err(e) => Err(e),
        }
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let ranges = SLICE.resolve(x, x.shape(X))?;
        let counts = ranges.iter().filter(|r| !r.squeezed).map(|r| &r.count);
        if !counts.eq(x.shape(UPDATE).iter()) {
            return Err(x.bad(
                UPDATE,
                format!("the selection's shape {:?}", slicing::shape_of(&ranges)),
                x.shape(UPDATE),
            ));
        }
        dims::copy(x, X, &mut out[0])?;
        slicing::nest(x.shape(X), &ranges, false).copy(x.data(UPDATE)?, &mut out[0].data)
    }

    fn update(&self) -> Option<Update> {
        Some(Update { target: X, source: UPDATE })
    }

    fn region(&self, x: &dyn Operands, target: &Layout) -> Result<Layout, OpError> {
        // Known without the positions, so that a plan can ask before they are.
        if x.has(STRIDE) && x.i32s(STRIDE)?.iter().any(|&s| s < 0) {
            return Err(OpError::Unsupported { what: "updating a state backwards".to_owned() });
        }
        let ranges = SLICE.resolve(x, &target.shape)?;
        let counts = ranges.iter().filter(|r| !r.squeezed).map(|r| &r.count);
        if !counts.eq(x.shape(UPDATE).iter()) {
            return Err(x.bad(
                UPDATE,
                format!("the selection's shape {:?}", slicing::shape_of(&ranges)),
                x.shape(UPDATE),
            ));
        }
        slicing::view(&ranges, target)
            .ok_or_else(|| OpError::Unsupported { what: "updating a state backwards".to_owned() })
    }

    fn cases(&self) -> Vec<Case> {
        let x = Tensor::floats(DType::F16, &[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        let case = |name, update: Tensor, begin: [i32; 2], end: [i32; 2]| {
            Case::new(name)
                .input("x", x.clone())
                .input("update", update)
                .input("begin", Tensor::ints(DType::I32, &[2], &begin))
                .input("end", Tensor::ints(DType::I32, &[2], &end))
        };
        let floats = |shape: &[usize], v: &[f32]| Tensor::floats(DType::F16, shape, v);
        vec![
            case("a column", floats(&[2, 1], &[-1.0, -2.0]), [0, 1], [2, 2])
                .expect(floats(&[2, 3], &[0.0, -1.0, 2.0, 3.0, -2.0, 5.0])),
            case("what masks hide does not matter", floats(&[1, 3], &[7.0, 8.0, 9.0]), [-1, 9], [0, 9])
                .constant("begin_mask", [false, true])
                .constant("end_mask", [true, true])
                .expect(floats(&[2, 3], &[0.0, 1.0, 2.0, 7.0, 8.0, 9.0])),
            case("strides, one of them backwards", floats(&[1, 2], &[7.0, 8.0]), [1, 2], [2, -4])
                .constant("stride", [1, -2])
                .expect(floats(&[2, 3], &[0.0, 1.0, 2.0, 8.0, 4.0, 7.0])),
            case("a squeezed axis", floats(&[2], &[7.0, 8.0]), [0, 1], [0, 3])
                .constant("squeeze_mask", [true, false])
                .expect(floats(&[2, 3], &[0.0, 7.0, 8.0, 3.0, 4.0, 5.0])),
            Case::new("integers, all of x")
                .input("x", Tensor::ints(DType::I32, &[2], &[1, 2]))
                .input("update", Tensor::ints(DType::I32, &[2], &[3, 4]))
                .constant("begin", [0])
                .constant("end", [2])
                .expect(Tensor::ints(DType::I32, &[2], &[3, 4])),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operands::{Bound, Operand, apply};

    #[test]
    fn an_update_past_the_end_is_refused() {
        let x = Tensor::floats(DType::F16, &[4], &[0.0; 4]);
        let update = Tensor::floats(DType::F16, &[2], &[1.0, 2.0]);
        let (begin, end) = (Tensor::ints(DType::I32, &[1], &[3]), Tensor::ints(DType::I32, &[1], &[5]));
        let mut bound = Bound::new(&SliceUpdate);
        for (name, t) in [("x", &x), ("update", &update), ("begin", &begin), ("end", &end)] {
            bound.bind(&SliceUpdate, name, [Operand::Known(t)]).unwrap();
        }
        assert!(matches!(apply(&SliceUpdate, &bound), Err(OpError::Operand { param: "update", .. })));
    }
}
