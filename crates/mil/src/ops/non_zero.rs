//! `non_zero`: the indices of the elements that are not zero, one row each, in row-major order. How many there are depends
//! on the values, so they must be known wherever the shape must.

use smallvec::smallvec;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::dims;
use crate::tensor::{Data, Tensor};
use crate::types::{DType, Opset, StaticType};

pub(super) struct NonZero;

const X: usize = 0;

/// Row-major indices of the elements that are not zero.
fn found(data: Data<'_>) -> impl Iterator<Item = usize> + '_ {
    let len = match data {
        Data::F32(v) => v.len(),
        Data::I32(v) => v.len(),
        Data::Bool(v) => v.len(),
    };
    (0..len).filter(move |&i| match data {
        Data::F32(v) => v[i] != 0.0,
        Data::I32(v) => v[i] != 0,
        Data::Bool(v) => v[i],
    })
}

impl Op for NonZero {
    fn name(&self) -> &'static str {
        "non_zero"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let rank = dims::numbers(x, X)?.shape.len();
        Ok(smallvec![StaticType::new(DType::I32, &[found(x.data(X)?).count(), rank])])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let shape = x.shape(X);
        if shape.is_empty() {
            return Ok(());
        }
        let mut rows = out[0].i32s()?.chunks_exact_mut(shape.len());
        for at in found(x.data(X)?) {
            let row = rows.next().ok_or_else(|| x.bad(X, "as many elements as when the shape was found", "more"))?;
            let mut rest = at;
            for (i, &n) in row.iter_mut().zip(shape).rev() {
                *i = i32::try_from(rest % n).map_err(|_| x.bad(X, "indices that fit 32 bits", rest % n))?;
                rest /= n;
            }
        }
        Ok(())
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            Case::new("of a matrix")
                .constant("x", crate::Const::floats(DType::F32, &[2, 3], &[0.0, 1.0, -0.0, 2.0, 0.0, 3.0]))
                .expect(Tensor::ints(DType::I32, &[3, 2], &[0, 1, 1, 0, 1, 2])),
            Case::new("of truth values").input("x", Tensor::bools(&[3], &[true, false, true])).expect(Tensor::ints(
                DType::I32,
                &[2, 1],
                &[0, 2],
            )),
            Case::new("none").input("x", Tensor::ints(DType::I32, &[2], &[0, 0])).expect(Tensor::ints(
                DType::I32,
                &[0, 1],
                &[],
            )),
            Case::new("a scalar has no index").input("x", Tensor::ints(DType::I32, &[], &[5])).expect(Tensor::ints(
                DType::I32,
                &[1, 0],
                &[],
            )),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operands::{Bound, Operand};

    #[test]
    fn values_known_only_at_run_time_are_refused() {
        let mut bound = Bound::new(&NonZero);
        bound.bind(&NonZero, "x", [Operand::Typed(StaticType::new(DType::F32, &[2]))]).unwrap();
        assert_eq!(NonZero.infer(&bound), Err(OpError::NeedsValue { param: "x" }));
    }
}
