//! `slice_by_size`: `size[i]` elements from `begin[i]` on along axis `i`; all that are left if the size is -1. A negative
//! `begin` counts from the end. A slice that is not wholly inside is an error.

use smallvec::smallvec;

use crate::case::Case;
use crate::layout::Layout;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::dims;
use crate::ops::support::slicing::{Range, Ranges, nest, view};
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct SliceBySize;

const X: usize = 0;
const BEGIN: usize = 1;
const SIZE: usize = 2;

/// What is selected along each axis.
fn ranges(x: &dyn Operands, shape: &[usize]) -> Result<Ranges, OpError> {
    let (begin, size) = (x.i32s(BEGIN)?, x.i32s(SIZE)?);
    if begin.len() != shape.len() || size.len() != shape.len() {
        return Err(OpError::mismatch(format!("{} begins and sizes", shape.len()), format!("{begin:?} and {size:?}")));
    }
    let range = |(axis, &n): (usize, &usize)| {
        let away = begin[axis].unsigned_abs() as usize;
        let first = if begin[axis] < 0 { n.checked_sub(away) } else { Some(away).filter(|&b| b <= n) };
        let first = first.ok_or_else(|| x.bad(BEGIN, format!("places among {n} elements on axis {axis}"), begin))?;
        let count = if size[axis] == -1 { n - first } else { dims::extent(x, SIZE, size[axis])? };
        if count > n - first {
            return Err(x.bad(SIZE, format!("at most {} from {first} on, on axis {axis}", n - first), size));
        }
        Ok(Range { first, step: 1, count, squeezed: false })
    };
    shape.iter().enumerate().map(range).collect()
}

impl Op for SliceBySize {
    fn name(&self) -> &'static str {
        "slice_by_size"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::required("begin"), Param::required("size")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let mut ty = dims::numbers(x, X)?;
        let size = x.i32s(SIZE)?;
        if x.data_at(BEGIN, 0).is_none() && size.len() == ty.shape.len() && size.iter().all(|&n| n >= 0) {
            // The shape is known without `begin`; `eval` checks the place.
            ty.shape = size.iter().map(|&n| n as usize).collect();
        } else {
            ty.shape = ranges(x, &ty.shape)?.iter().map(|r| r.count).collect();
        }
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        nest(x.shape(X), &ranges(x, x.shape(X))?, true).copy(x.data(X)?, &mut out[0].data)
    }

    fn view(&self, x: &dyn Operands, layout: &Layout) -> Option<Layout> {
        view(&ranges(x, &layout.shape).ok()?, layout)
    }

    fn cases(&self) -> Vec<Case> {
        let values: Vec<i32> = (0..12).collect();
        let x = Tensor::ints(DType::I32, &[3, 4], &values);
        let case = |name, begin: [i32; 2], size: [i32; 2], shape: [usize; 2], expect: &[i32]| {
            Case::new(name)
                .input("x", x.clone())
                .input("begin", Tensor::ints(DType::I32, &[2], &begin))
                .constant("size", size)
                .expect(Tensor::ints(DType::I32, &shape, expect))
        };
        vec![
            case("from the middle", [1, 1], [2, 2], [2, 2], &[5, 6, 9, 10]),
            case("all that are left", [1, 2], [-1, -1], [2, 2], &[6, 7, 10, 11]),
            case("a negative begin counts from the end", [-1, -3], [1, 2], [1, 2], &[9, 10]),
            case("nothing, at the end", [3, 0], [-1, 0], [0, 0], &[]),
        ]
    }
}
