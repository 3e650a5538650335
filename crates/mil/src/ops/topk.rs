//! `topk`: along `axis` the `k` largest elements, or smallest if `ascending`, in order; `k` of -1 takes all. The second
//! result holds their indices, unless `return_indices` is false. `sort` of false leaves the order free: it is the same here.
//! Of equal elements the one of lower index comes first; NaN counts as larger than every number.

use smallvec::smallvec;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::dims;
use crate::ops::support::sort::{Line, Ordered, lines, select, select_indices};
use crate::tensor::{Data, DataMut, Tensor};
use crate::types::{Class, DType, Opset};
use std::cmp::Ordering;

pub(super) struct Topk;

const X: usize = 0;
const K: usize = 1;
const AXIS: usize = 2;
const ASCENDING: usize = 3;
const RETURN_INDICES: usize = 5;
const OUTPUT_INDICES_DTYPE: usize = 6;

impl Op for Topk {
    fn name(&self) -> &'static str {
        "topk"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::required("x"),
                Param::optional("k"),
                Param::optional("axis"),
                Param::optional("ascending"),
                Param::optional("sort"),
                Param::optional("return_indices"),
                Param::optional("output_indices_dtype"),
            ]
        }
    }

    fn results(&self, x: &dyn Operands) -> usize {
        if x.bool_or(RETURN_INDICES, true) == Ok(false) { 1 } else { 2 }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let mut ty = dims::numbers(x, X)?;
        if ty.dtype.class() == Class::Bool {
            return Err(x.bad(X, "numbers", ty.dtype));
        }
        let axis = dims::axis_or(x, AXIS, ty.shape.len(), -1)?;
        let (k, n) = (x.i32_or(K, 1)?, ty.shape[axis]);
        x.bool_or(ASCENDING, false)?;
        if i32::try_from(n).is_err() {
            return Err(x.bad(X, "an axis whose indices fit 32 bits", n));
        }
        ty.shape[axis] = match usize::try_from(k) {
            Ok(k) if k <= n => k,
            Err(_) if k == -1 => n,
            _ => return Err(x.bad(K, format!("a number up to {n}, or -1"), k)),
        };
        let mut indices = ty.clone();
        indices.dtype = match x.text_or(OUTPUT_INDICES_DTYPE, "int32")? {
            "int32" => DType::I32,
            "uint16" => DType::U16,
            other => return Err(x.bad(OUTPUT_INDICES_DTYPE, "int32 or uint16", other)),
        };
        if x.bool_or(RETURN_INDICES, true)? { Ok([ty, indices].into_iter().collect()) } else { Ok(smallvec![ty]) }
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let shape = x.shape(X);
        if out[0].shape.contains(&0) {
            return Ok(());
        }
        let axis = dims::axis_or(x, AXIS, shape.len(), -1)?;
        let (outer, n, inner) = dims::around(shape, axis)?;
        let k = out[0].shape[axis];
        let ascending = x.bool_or(ASCENDING, false)?;
        let lines = lines(outer, n, inner).zip(lines(outer, k, inner));
        let (values, indices) = out.split_at_mut(1);
        let indices = match indices.first_mut() {
            Some(out) => Some(out.i32s()?),
            None => None,
        };
        match (x.data(X)?, &mut values[0].data) {
            (Data::F32(a), DataMut::F32(r)) => pick(a, r, indices, ascending, lines),
            (Data::I32(a), DataMut::I32(r)) => pick(a, r, indices, ascending, lines),
            _ => return Err(dims::class_mismatch()),
        }
        Ok(())
    }

    fn cases(&self) -> Vec<Case> {
        let x = Tensor::floats(DType::F16, &[2, 4], &[3.0, 1.0, 4.0, 1.0, -5.0, 9.0, -2.0, 6.0]);
        let f = |shape: &[usize], v: &[f32]| Tensor::floats(DType::F16, shape, v);
        let i = |shape: &[usize], v: &[i32]| Tensor::ints(DType::I32, shape, v);
        vec![
            Case::new("by default the largest one of the last axis")
                .input("x", x.clone())
                .expect(f(&[2, 1], &[4.0, 9.0]))
                .expect(i(&[2, 1], &[2, 1])),
            Case::new("several, in order, with narrow indices")
                .input("x", x.clone())
                .constant("k", 3)
                .constant("axis", 1)
                .constant("sort", true)
                .constant("return_indices", true)
                .constant("output_indices_dtype", "uint16")
                .expect(f(&[2, 3], &[4.0, 3.0, 1.0, 9.0, 6.0, -2.0]))
                .expect(Tensor::ints(DType::U16, &[2, 3], &[2, 0, 1, 1, 3, 2])),
            Case::new("the smallest ones; equal ones by index")
                .input("x", x.clone())
                .constant("k", 2)
                .constant("ascending", true)
                .expect(f(&[2, 2], &[1.0, 1.0, -5.0, -2.0]))
                .expect(i(&[2, 2], &[1, 3, 0, 2])),
            Case::new("along the first axis, all")
                .input("x", x.clone())
                .constant("k", -1)
                .constant("axis", 0)
                .expect(f(&[2, 4], &[3.0, 9.0, 4.0, 6.0, -5.0, 1.0, -2.0, 1.0]))
                .expect(i(&[2, 4], &[0, 1, 0, 1, 1, 0, 1, 0])),
            Case::new("without indices")
                .input("x", Tensor::ints(DType::I32, &[5], &[4, -7, 9, 9, 0]))
                .constant("k", 3)
                .constant("return_indices", false)
                .expect(i(&[3], &[9, 9, 4])),
        ]
    }
}

fn pick<T: Ordered>(
    a: &[T],
    r: &mut [T],
    mut indices: Option<&mut [i32]>,
    ascending: bool,
    lines: impl Iterator<Item = (Line, Line)>,
) {
    let wanted = if ascending { Ordering::Less } else { Ordering::Greater };
    for (source, line) in lines {
        match &mut indices {
            None => select(r, line, (0..source.len).map(|i| a[source.at(i)]), |p, q| p.order(q) == wanted),
            Some(indices) => {
                select_indices(a, source, ascending, indices, line);
                for at in (0..line.len).map(|i| line.at(i)) {
                    r[at] = a[source.at(indices[at] as usize)];
                }
            }
        }
    }
}
