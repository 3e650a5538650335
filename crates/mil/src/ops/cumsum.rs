//! `cumsum`: running sums along `axis`. `exclusive` leaves each element out of its own sum; `reverse` sums from the end.

use smallvec::smallvec;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::dims;
use crate::tensor::{Data, DataMut, Tensor};
use crate::types::{Class, DType, Opset};

pub(super) struct Cumsum;

const X: usize = 0;
const AXIS: usize = 1;
const EXCLUSIVE: usize = 2;
const REVERSE: usize = 3;

impl Op for Cumsum {
    fn name(&self) -> &'static str {
        "cumsum"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::optional("axis"), Param::optional("exclusive"), Param::optional("reverse")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let ty = dims::numbers(x, X)?;
        dims::axis_or(x, AXIS, ty.shape.len(), 0)?;
        if ty.dtype.class() == Class::Bool {
            return Err(x.bad(X, "numbers", ty.dtype));
        }
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let shape = x.shape(X);
        if shape.contains(&0) {
            return Ok(());
        }
        let (exclusive, reverse) = (x.bool_or(EXCLUSIVE, false)?, x.bool_or(REVERSE, false)?);
        let (_, n, inner) = dims::around(shape, dims::axis_or(x, AXIS, shape.len(), 0)?)?;
        match (x.data(X)?, &mut out[0].data) {
            (Data::F32(a), DataMut::F32(r)) => scan(a, r, [n, inner], [exclusive, reverse], 0.0, |s, v| s + v),
            (Data::I32(a), DataMut::I32(r)) => scan(a, r, [n, inner], [exclusive, reverse], 0, i32::wrapping_add),
            _ => return Err(dims::class_mismatch()),
        }
        Ok(())
    }

    fn cases(&self) -> Vec<Case> {
        let x = Tensor::floats(DType::F16, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let case = |name, axis: i32, expect: [f32; 6]| {
            Case::new(name).input("x", x.clone()).constant("axis", axis).expect(Tensor::floats(
                DType::F16,
                &[2, 3],
                &expect,
            ))
        };
        vec![
            case("along the last axis", -1, [1.0, 3.0, 6.0, 4.0, 9.0, 15.0]),
            case("exclusive", 1, [0.0, 1.0, 3.0, 0.0, 4.0, 9.0]).constant("exclusive", true),
            case("from the end", 1, [6.0, 5.0, 3.0, 15.0, 11.0, 6.0]).constant("reverse", true),
            case("exclusive, from the end", 0, [4.0, 5.0, 6.0, 0.0, 0.0, 0.0])
                .constant("exclusive", true)
                .constant("reverse", true),
            Case::new("integers, along the first axis")
                .input("x", Tensor::ints(DType::I32, &[3], &[1, i32::MAX, 1]))
                .expect(Tensor::ints(DType::I32, &[3], &[1, i32::MIN, i32::MIN + 1])),
        ]
    }
}

/// Running sums along the middle of `[…, n, inner]`.
fn scan<T: Copy>(
    a: &[T],
    r: &mut [T],
    [n, inner]: [usize; 2],
    [exclusive, reverse]: [bool; 2],
    zero: T,
    add: impl Fn(T, T) -> T,
) {
    for (a, r) in a.chunks_exact(n * inner).zip(r.chunks_exact_mut(n * inner)) {
        for i in 0..inner {
            let mut sum = zero;
            for j in 0..n {
                let at = (if reverse { n - 1 - j } else { j }) * inner + i;
                let before = sum;
                sum = add(sum, a[at]);
                r[at] = if exclusive { before } else { sum };
            }
        }
    }
}
