//! `one_hot`: along a new axis of `one_hot_vector_size`, `on_value` at each index and `off_value` elsewhere. An index
//! outside lights nothing. The values default to the integers 1 and 0.

use smallvec::smallvec;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results, normalize_axis};
use crate::ops::support::dims;
use crate::tensor::{DataMut, Tensor};
use crate::types::{Class, DType, Opset, Shape, StaticType};

pub(super) struct OneHot;

const INDICES: usize = 0;
const SIZE: usize = 1;
const AXIS: usize = 2;
const ON: usize = 3;
const OFF: usize = 4;

fn axis(x: &dyn Operands) -> Result<usize, OpError> {
    let rank = x.shape(INDICES).len() + 1;
    let axis = x.i32_or(AXIS, -1)?;
    normalize_axis(axis, rank).ok_or_else(|| x.bad(AXIS, format!("an axis of the result, of rank {rank}"), axis))
}

impl Op for OneHot {
    fn name(&self) -> &'static str {
        "one_hot"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::required("indices"),
                Param::required("one_hot_vector_size"),
                Param::optional("axis"),
                Param::optional("on_value"),
                Param::optional("off_value"),
            ]
        }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        if !x.dtype(INDICES).is_int() {
            return Err(x.bad(INDICES, "integers", x.dtype(INDICES)));
        }
        let dtype = match (x.has(ON), x.has(OFF)) {
            (false, false) => DType::I32,
            (true, false) => x.dtype(ON),
            (_, true) => x.dtype(OFF),
        };
        if dtype.class() == Class::String || (x.has(ON) && x.dtype(ON) != dtype) {
            return Err(x.bad(ON, "a value of the type of off_value", dtype));
        }
        let size = dims::extent(x, SIZE, x.i32(SIZE)?)?;
        let mut shape = Shape::from_slice(x.shape(INDICES));
        shape.insert(axis(x)?, size);
        Ok(smallvec![StaticType { dtype, shape }])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let out = &mut out[0];
        if out.shape.contains(&0) {
            return Ok(());
        }
        let (_, size, inner) = dims::around(out.shape, axis(x)?)?;
        let indices = x.i32s(INDICES)?;
        match &mut out.data {
            DataMut::F32(r) => light(indices, r, size, inner, x.f32_or(ON, 1.0)?, x.f32_or(OFF, 0.0)?),
            DataMut::I32(r) => light(indices, r, size, inner, x.i32_or(ON, 1)?, x.i32_or(OFF, 0)?),
            DataMut::Bool(r) => light(indices, r, size, inner, x.bool_or(ON, true)?, x.bool_or(OFF, false)?),
        }
        Ok(())
    }

    fn cases(&self) -> Vec<Case> {
        let indices = Tensor::ints(DType::I32, &[3], &[1, 0, 2]);
        vec![
            Case::new("along the last axis, integers by default")
                .input("indices", indices.clone())
                .constant("one_hot_vector_size", 3)
                .expect(Tensor::ints(DType::I32, &[3, 3], &[0, 1, 0, 1, 0, 0, 0, 0, 1])),
            Case::new("along the first axis, with values")
                .input("indices", indices)
                .constant("one_hot_vector_size", 2)
                .constant("axis", 0)
                .constant("on_value", 5.0)
                .constant("off_value", -1.0)
                .expect(Tensor::floats(DType::F32, &[2, 3], &[-1.0, 5.0, -1.0, 5.0, -1.0, -1.0])),
            Case::new("indices outside light nothing")
                .input("indices", Tensor::ints(DType::I32, &[2], &[-1, 2]))
                .constant("one_hot_vector_size", 2)
                .constant("axis", -1)
                .constant("on_value", true)
                .constant("off_value", false)
                .expect(Tensor::bools(&[2, 2], &[false; 4])),
            Case::new("of a scalar")
                .input("indices", Tensor::ints(DType::I32, &[], &[1]))
                .constant("one_hot_vector_size", 2)
                .expect(Tensor::ints(DType::I32, &[2], &[0, 1])),
        ]
    }
}

fn light<T: Copy>(indices: &[i32], r: &mut [T], size: usize, inner: usize, on: T, off: T) {
    r.fill(off);
    for (i, &index) in indices.iter().enumerate() {
        match usize::try_from(index) {
            Ok(index) if index < size => r[(i / inner * size + index) * inner + i % inner] = on,
            _ => {}
        }
    }
}
