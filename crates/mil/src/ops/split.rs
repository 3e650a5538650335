//! `split`: `x` cut along `axis` into results of `split_sizes` slices, or into `num_splits` results of one size.

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::dims;
use crate::ops::support::strided::Nest;
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct Split;

const X: usize = 0;
const NUM_SPLITS: usize = 1;
const SPLIT_SIZES: usize = 2;
const AXIS: usize = 3;

/// More results than any program has; a bound on what a hostile one makes us allocate.
const MOST: usize = 1 << 16;

impl Op for Split {
    fn name(&self) -> &'static str {
        "split"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::required("x"),
                Param::optional("num_splits"),
                Param::optional("split_sizes"),
                Param::required("axis"),
            ]
        }
    }

    fn results(&self, x: &dyn Operands) -> usize {
        if x.has(SPLIT_SIZES) {
            x.shape(SPLIT_SIZES).first().copied().unwrap_or(0)
        } else {
            x.i32_or(NUM_SPLITS, 0).map_or(0, |n| n.max(0) as usize)
        }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let ty = dims::numbers(x, X)?;
        let axis = x.axis(AXIS, ty.shape.len())?;
        let whole = ty.shape[axis];
        let part = |n: usize| {
            let mut part = ty.clone();
            part.shape[axis] = n;
            part
        };
        if x.has(SPLIT_SIZES) {
            let sizes = x.i32s(SPLIT_SIZES)?;
            let types =
                sizes.iter().map(|&n| dims::extent(x, SPLIT_SIZES, n).map(part)).collect::<Result<Results, _>>()?;
            let total = types.iter().try_fold(0usize, |a, t| a.checked_add(t.shape[axis]));
            if total != Some(whole) || x.shape(SPLIT_SIZES).len() != 1 {
                return Err(x.bad(SPLIT_SIZES, format!("a vector of sizes whose sum is {whole}"), sizes));
            }
            if x.has(NUM_SPLITS) && usize::try_from(x.i32(NUM_SPLITS)?) != Ok(sizes.len()) {
                return Err(x.bad(NUM_SPLITS, format!("{}, as many as split_sizes", sizes.len()), x.i32(NUM_SPLITS)?));
            }
            return Ok(types);
        }
        let n = x.i32(NUM_SPLITS)?;
        match usize::try_from(n) {
            Ok(n @ 1..=MOST) if whole % n == 0 => Ok((0..n).map(|_| part(whole / n)).collect()),
            _ => Err(x.bad(NUM_SPLITS, format!("a divisor of {whole}"), n)),
        }
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let shape = x.shape(X);
        if shape.contains(&0) {
            return Ok(());
        }
        let axis = x.axis(AXIS, shape.len())?;
        let (outer, whole, inner) = dims::around(shape, axis)?;
        let mut at = 0;
        for part in out {
            let slices = part.shape[axis];
            let mut nest = Nest::at(at * inner, 0);
            nest.push(outer, whole * inner, slices * inner);
            nest.push(slices * inner, 1, 1);
            nest.copy(x.data(X)?, &mut part.data)?;
            at += slices;
        }
        Ok(())
    }

    fn cases(&self) -> Vec<Case> {
        let x = Tensor::floats(DType::F16, &[2, 4], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        let floats = |shape: &[usize], v: &[f32]| Tensor::floats(DType::F16, shape, v);
        vec![
            Case::new("into parts of one size")
                .input("x", x.clone())
                .constant("num_splits", 2)
                .constant("axis", -1)
                .expect(floats(&[2, 2], &[0.0, 1.0, 4.0, 5.0]))
                .expect(floats(&[2, 2], &[2.0, 3.0, 6.0, 7.0])),
            Case::new("by sizes")
                .input("x", x.clone())
                .constant("split_sizes", [1, 3])
                .constant("axis", 1)
                .expect(floats(&[2, 1], &[0.0, 4.0]))
                .expect(floats(&[2, 3], &[1.0, 2.0, 3.0, 5.0, 6.0, 7.0])),
            Case::new("by sizes and their number, one of them empty")
                .input("x", x)
                .constant("num_splits", 3)
                .constant("split_sizes", [1, 0, 1])
                .constant("axis", 0)
                .expect(floats(&[1, 4], &[0.0, 1.0, 2.0, 3.0]))
                .expect(floats(&[0, 4], &[]))
                .expect(floats(&[1, 4], &[4.0, 5.0, 6.0, 7.0])),
            Case::new("into one, of truth values")
                .input("x", Tensor::bools(&[2], &[true, false]))
                .constant("num_splits", 1)
                .constant("axis", 0)
                .expect(Tensor::bools(&[2], &[true, false])),
        ]
    }
}
