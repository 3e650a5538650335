//! `slice_by_index`: `x[begin:end:stride]` on each axis, as numpy slices (see `support::slicing`). What `begin`, `end` hold
//! where a mask is set does not matter.

use smallvec::smallvec;

use crate::case::Case;
use crate::layout::Layout;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::{dims, slicing};
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct SliceByIndex;

const X: usize = 0;
const SLICE: slicing::Params = slicing::Params { begin: 1 };

impl Op for SliceByIndex {
    fn name(&self) -> &'static str {
        "slice_by_index"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::required("x"),
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
        let mut ty = dims::numbers(x, X)?;
        ty.shape = SLICE.result(x, &ty.shape)?;
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let ranges = SLICE.resolve(x, x.shape(X))?;
        let counts = ranges.iter().filter(|r| !r.squeezed).map(|r| &r.count);
        if !counts.eq(out[0].shape.iter()) {
            let found = slicing::shape_of(&ranges);
            return Err(OpError::mismatch(format!("a slice of shape {:?}", out[0].shape), format!("{found:?}")));
        }
        slicing::nest(x.shape(X), &ranges, true).copy(x.data(X)?, &mut out[0].data)
    }

    fn view(&self, x: &dyn Operands, layout: &Layout) -> Option<Layout> {
        slicing::view(&SLICE.resolve(x, &layout.shape).ok()?, layout)
    }

    fn cases(&self) -> Vec<Case> {
        let values: Vec<f32> = (0..12).map(|v| v as f32).collect();
        let x = Tensor::floats(DType::F16, &[3, 4], &values);
        let case = |name, begin: [i32; 2], end: [i32; 2]| {
            Case::new(name).input("x", x.clone()).constant("begin", begin).constant("end", end)
        };
        let floats = |shape: &[usize], v: &[f32]| Tensor::floats(DType::F16, shape, v);
        vec![
            case("begin and end", [1, 0], [3, 2]).expect(floats(&[2, 2], &[4.0, 5.0, 8.0, 9.0])),
            case("negative ones count from the end", [-2, -3], [-1, -1]).expect(floats(&[1, 2], &[5.0, 6.0])),
            case("ends beyond the axis are clamped", [2, 3], [100, 100]).expect(floats(&[1, 1], &[11.0])),
            case("strides", [0, 0], [3, 4]).constant("stride", [2, 3]).expect(floats(&[2, 2], &[0.0, 3.0, 8.0, 11.0])),
            case("a negative stride walks backwards", [2, 3], [0, 0])
                .constant("stride", [-1, -2])
                .expect(floats(&[2, 2], &[11.0, 9.0, 7.0, 5.0])),
            case("a negative stride over whole axes", [7, 7], [7, 7])
                .constant("stride", [-2, -1])
                .constant("begin_mask", [true, true])
                .constant("end_mask", [true, true])
                .expect(floats(&[2, 4], &[11.0, 10.0, 9.0, 8.0, 3.0, 2.0, 1.0, 0.0])),
            case("what masks hide does not matter", [1, -99], [1, -99])
                .constant("begin_mask", [false, true])
                .constant("end_mask", [true, true])
                .expect(floats(&[2, 4], &[4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0])),
            case("a squeezed axis is an index", [-1, 1], [0, 3])
                .constant("squeeze_mask", [true, false])
                .expect(floats(&[2], &[9.0, 10.0])),
            case("all axes squeezed give a scalar", [1, 2], [0, 0])
                .constant("squeeze_mask", [true, true])
                .expect(floats(&[], &[6.0])),
            case("nothing", [2, 1], [2, 1]).expect(floats(&[0, 0], &[])),
            Case::new("begin and end known at run time, truth values")
                .input("x", Tensor::bools(&[4], &[true, false, false, true]))
                .input("begin", Tensor::ints(DType::I16, &[1], &[1]))
                .input("end", Tensor::ints(DType::I16, &[1], &[4]))
                .expect(Tensor::bools(&[3], &[false, false, true])),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operands::{Bound, Operand};
    use crate::types::StaticType;

    #[test]
    fn a_begin_that_only_picks_a_layer_need_not_be_known_for_the_shape() {
        let yes = [Tensor::bools(&[2], &[true, false]), Tensor::bools(&[2], &[false, true])];
        let vector = || Operand::Typed(StaticType::new(DType::I32, &[2]));
        let mut bound = Bound::new(&SliceByIndex);
        let bind = |bound: &mut Bound<'_>, name, arg| bound.bind(&SliceByIndex, name, [arg]).unwrap();
        bind(&mut bound, "x", Operand::Typed(StaticType::new(DType::F16, &[3, 4])));
        bind(&mut bound, "begin", vector());
        bind(&mut bound, "end", vector());
        let before = bound.clone();
        assert_eq!(SliceByIndex.infer(&before), Err(OpError::NeedsValue { param: "begin" }));
        for (name, mask) in [("begin_mask", 1), ("end_mask", 1), ("squeeze_mask", 0)] {
            bound.bind(&SliceByIndex, name, [Operand::Owned(yes[mask].clone())]).unwrap();
        }
        assert_eq!(SliceByIndex.infer(&bound).unwrap()[0].shape[..], [4]);
    }

    #[test]
    fn an_index_outside_is_told_as_a_number() {
        let mut bound = Bound::new(&SliceByIndex);
        let mut bind = |name, arg| bound.bind(&SliceByIndex, name, [arg]).unwrap();
        bind("x", Operand::Typed(StaticType::new(DType::F16, &[3, 4])));
        bind("begin", Operand::Owned(Tensor::ints(DType::I32, &[2], &[300, 0])));
        bind("end", Operand::Owned(Tensor::ints(DType::I32, &[2], &[301, 4])));
        bind("squeeze_mask", Operand::Owned(Tensor::bools(&[2], &[true, false])));
        let error = SliceByIndex.infer(&bound).unwrap_err().to_string();
        assert_eq!(error, "`begin`: expected an index into 3 elements on axis 0, found 300");
    }
}
