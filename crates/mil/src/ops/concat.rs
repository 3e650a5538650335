//! `concat`: tensors one after the other along `axis`, or with `interleave` in turns, a slice of each. Scalars give a
//! vector.

use smallvec::smallvec;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results, normalize_axis};
use crate::ops::support::dims;
use crate::ops::support::strided::Nest;
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct Concat;

const VALUES: usize = 0;
const AXIS: usize = 1;
const INTERLEAVE: usize = 2;

/// The axis of the result along which values follow each other.
fn axis(x: &dyn Operands) -> Result<usize, OpError> {
    let rank = x.shape(VALUES).len().max(1);
    let axis = x.i32(AXIS)?;
    normalize_axis(axis, rank).ok_or_else(|| x.bad(AXIS, format!("an axis of a tensor of rank {rank}"), axis))
}

impl Op for Concat {
    fn name(&self) -> &'static str {
        "concat"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::variadic("values"), Param::required("axis"), Param::optional("interleave")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let mut ty = dims::numbers(x, VALUES)?;
        let axis = axis(x)?;
        let interleave = x.bool_or(INTERLEAVE, false)?;
        let scalars = ty.shape.is_empty();
        let mut total = if scalars { 1 } else { ty.shape[axis] };
        for i in 1..x.count(VALUES) {
            let (dtype, shape) = x.ty_at(VALUES, i);
            let same = shape.len() == ty.shape.len()
                && (0..shape.len()).all(|a| shape[a] == ty.shape[a] || (a == axis && !interleave));
            if dtype != ty.dtype || !same {
                let expected = format!("tensors like {ty} except in extent {axis}");
                return Err(x.bad(VALUES, expected, dims::numbers_at(x, VALUES, i)?));
            }
            total = dims::sum(&[total, if scalars { 1 } else { shape[axis] }])?;
        }
        if scalars {
            ty.shape.push(total);
        } else {
            ty.shape[axis] = total;
        }
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let out = &mut out[0];
        if out.shape.contains(&0) {
            return Ok(());
        }
        let axis = axis(x)?;
        let interleave = x.bool_or(INTERLEAVE, false)?;
        let (outer, all, inner) = dims::around(out.shape, axis)?;
        let n = x.count(VALUES);
        let mut at = 0;
        for i in 0..n {
            let data = x.data_at(VALUES, i).ok_or(OpError::NeedsValue { param: x.name_of(VALUES) })?;
            let slices = x.ty_at(VALUES, i).1.get(axis).copied().unwrap_or(1);
            let mut nest = Nest::at(0, at * inner);
            nest.push(outer, slices * inner, all * inner);
            nest.push(slices, inner, if interleave { n * inner } else { inner });
            nest.push(inner, 1, 1);
            nest.copy(data, &mut out.data)?;
            at += if interleave { 1 } else { slices };
        }
        Ok(())
    }

    fn cases(&self) -> Vec<Case> {
        let a = Tensor::floats(DType::F16, &[2, 2], &[1.0, 2.0, 3.0, 4.0]);
        let b = Tensor::floats(DType::F16, &[2, 1], &[5.0, 6.0]);
        let m = |v: [i32; 6]| Tensor::ints(DType::I32, &[3, 2], &v);
        let (p, q) = (m([1, 2, 3, 4, 5, 6]), m([7, 8, 9, 10, 11, 12]));
        vec![
            Case::new("along the last axis")
                .input("values", a.clone())
                .input("values", b)
                .constant("axis", -1)
                .expect(Tensor::floats(DType::F16, &[2, 3], &[1.0, 2.0, 5.0, 3.0, 4.0, 6.0])),
            Case::new("along the first axis")
                .input("values", a.clone())
                .input("values", a)
                .constant("axis", 0)
                .constant("interleave", false)
                .expect(Tensor::floats(DType::F16, &[4, 2], &[1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0])),
            Case::new("in turns")
                .input("values", p.clone())
                .input("values", q.clone())
                .constant("axis", 0)
                .constant("interleave", true)
                .expect(Tensor::ints(DType::I32, &[6, 2], &[1, 2, 7, 8, 3, 4, 9, 10, 5, 6, 11, 12])),
            Case::new("in turns along the last axis")
                .input("values", p)
                .input("values", q)
                .constant("axis", 1)
                .constant("interleave", true)
                .expect(Tensor::ints(DType::I32, &[3, 4], &[1, 7, 2, 8, 3, 9, 4, 10, 5, 11, 6, 12])),
            Case::new("scalars give a vector")
                .constant("values", 0)
                .input("values", Tensor::ints(DType::I32, &[], &[5]))
                .constant("values", 7)
                .constant("axis", 0)
                .constant("interleave", false)
                .expect(Tensor::ints(DType::I32, &[3], &[0, 5, 7])),
            Case::new("one value, of truth values")
                .input("values", Tensor::bools(&[2], &[true, false]))
                .constant("axis", 0)
                .expect(Tensor::bools(&[2], &[true, false])),
        ]
    }
}
