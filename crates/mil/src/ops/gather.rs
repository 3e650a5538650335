//! `gather`: slices of `x` along `axis`, one for each index; the axes of `indices` take the place of `axis`. With
//! `batch_dims` the leading axes of both go together. A negative index counts from the end, except under
//! `validate_indices`, which refuses it. An index outside is always an error here; Core ML leaves it undefined.

use smallvec::smallvec;

use crate::case::Case;
use crate::compressed::outside;
use crate::lower::{Context, Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::dims;
use crate::ops::support::picking::{Indices, expect_ints};
use crate::ops::support::slicing::index;
use crate::packed::Packed;
use crate::tensor::{Data, DataMut, Tensor};
use crate::types::{DType, Opset, Shape};

pub(super) struct Gather;

const X: usize = 0;
const INDICES: usize = 1;
const AXIS: usize = 2;
const BATCH_DIMS: usize = 3;
const VALIDATE_INDICES: usize = 4;

/// The axis and the number of batch axes, checked.
fn layout(x: &dyn Operands) -> Result<(usize, usize), OpError> {
    let axis = dims::axis_or(x, AXIS, x.shape(X).len(), 0)?;
    let batch = dims::extent(x, BATCH_DIMS, x.i32_or(BATCH_DIMS, 0)?)?;
    let (a, b) = (x.shape(X), x.shape(INDICES));
    if batch > axis || batch > b.len() || a[..batch] != b[..batch] {
        return Err(x.bad(BATCH_DIMS, format!("leading axes that {a:?} and {b:?} share, before axis {axis}"), batch));
    }
    Ok((axis, batch))
}

/// Where the elements lie, each of these in elements: `batches` of `outer` blocks of `axis` slices of `inner` elements.
struct Plan<'a> {
    batches: usize,
    outer: usize,
    axis: usize,
    inner: usize,
    indices: Indices<'a>,
}

impl Plan<'_> {
    fn run<T: Copy>(&self, src: &[T], dst: &mut [T]) -> Result<(), OpError> {
        let all = self.indices.values;
        let per_batch = all.len() / self.batches.max(1);
        let mut to = 0;
        for b in 0..self.batches {
            let indices = &all[b * per_batch..(b + 1) * per_batch];
            for o in 0..self.outer {
                let block = (b * self.outer + o) * self.axis;
                for &i in indices {
                    let at = self.indices.place(i, self.axis)?;
                    let from = (block + at) * self.inner;
                    dst[to..to + self.inner].copy_from_slice(&src[from..from + self.inner]);
                    to += self.inner;
                }
            }
        }
        Ok(())
    }
}

/// Rows of a packed table, unpacked as they are asked for.
#[derive(Debug)]
struct Rows {
    table: Packed,
    rows: usize,
    width: usize,
    strict: bool,
}

impl Kernel for Rows {
    fn run(&self, x: &dyn Operands, out: &mut [Out<'_>], _cx: &mut Context<'_>) -> Result<(), OpError> {
        let out = out[0].f32s()?;
        for (n, &i) in x.i32s(INDICES)?.iter().enumerate() {
            let at = index(i, self.rows).filter(|_| !self.strict || i >= 0);
            let at = at.ok_or_else(|| outside(x, INDICES, self.rows, i))?;
            self.table.decode(at * self.width..(at + 1) * self.width, &mut out[n * self.width..(n + 1) * self.width]);
        }
        Ok(())
    }

    fn holds(&self, param: usize) -> bool {
        param == X
    }
}

impl Op for Gather {
    fn name(&self) -> &'static str {
        "gather"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::required("x"),
                Param::required("indices"),
                Param::optional("axis"),
                Param::optional("batch_dims"),
                Param::optional("validate_indices"),
            ]
        }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let mut ty = dims::numbers(x, X)?;
        let (axis, batch) = layout(x)?;
        expect_ints(x, INDICES)?;
        let mut shape = Shape::from_slice(&ty.shape[..axis]);
        shape.extend_from_slice(&x.shape(INDICES)[batch..]);
        shape.extend_from_slice(&ty.shape[axis + 1..]);
        ty.shape = shape;
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let (axis, batch) = layout(x)?;
        if out[0].shape.contains(&0) {
            return Ok(());
        }
        let shape = x.shape(X);
        let plan = Plan {
            batches: dims::product(&shape[..batch])?,
            outer: dims::product(&shape[batch..axis])?,
            axis: shape[axis],
            inner: dims::product(&shape[axis + 1..])?,
            indices: Indices::new(x, INDICES, VALIDATE_INDICES)?,
        };
        match (x.data(X)?, &mut out[0].data) {
            (Data::F32(s), DataMut::F32(d)) => plan.run(s, d),
            (Data::I32(s), DataMut::I32(d)) => plan.run(s, d),
            (Data::Bool(s), DataMut::Bool(d)) => plan.run(s, d),
            _ => Err(dims::class_mismatch()),
        }
    }

    fn lower(&self, x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        let table = x.packed_at(X, 0)?;
        let (rows, first) = (table.ty().shape.first().copied()?, x.data_at(AXIS, 0));
        let along_first = x.count(AXIS) == 0 || matches!(first, Some(Data::I32(&[0])));
        let flat = x.count(BATCH_DIMS) == 0 || matches!(x.data_at(BATCH_DIMS, 0), Some(Data::I32(&[0])));
        if !along_first || !flat || rows == 0 || !table.ty().dtype.is_float() {
            return None;
        }
        let strict = matches!(x.data_at(VALIDATE_INDICES, 0), Some(Data::Bool(&[true])));
        Some(Box::new(Rows { width: table.ty().elements() / rows, rows, strict, table }))
    }

    fn cases(&self) -> Vec<Case> {
        let table = Tensor::floats(DType::F16, &[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let cube = Tensor::ints(DType::I32, &[2, 3, 2], &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
        vec![
            Case::new("rows of a table, without axis")
                .input("x", table.clone())
                .input("indices", Tensor::ints(DType::U16, &[1, 2], &[2, 0]))
                .expect(Tensor::floats(DType::F16, &[1, 2, 2], &[5.0, 6.0, 1.0, 2.0])),
            Case::new("a negative index counts from the end")
                .input("x", table.clone())
                .input("indices", Tensor::ints(DType::I32, &[2], &[-1, -3]))
                .constant("axis", 0)
                .constant("validate_indices", false)
                .expect(Tensor::floats(DType::F16, &[2, 2], &[5.0, 6.0, 1.0, 2.0])),
            Case::new("along the last axis")
                .input("x", table.clone())
                .constant("indices", [1, 1, 0])
                .constant("axis", -1)
                .expect(Tensor::floats(DType::F16, &[3, 3], &[2.0, 2.0, 1.0, 4.0, 4.0, 3.0, 6.0, 6.0, 5.0])),
            Case::new("a scalar index takes the axis away")
                .input("x", Tensor::ints(DType::I32, &[4], &[5, 6, 7, 8]))
                .input("indices", Tensor::ints(DType::I16, &[], &[2]))
                .constant("axis", 0)
                .constant("batch_dims", 0)
                .constant("validate_indices", true)
                .expect(Tensor::ints(DType::I32, &[], &[7])),
            Case::new("batches have indices of their own")
                .input("x", cube.clone())
                .input("indices", Tensor::ints(DType::I32, &[2, 2], &[0, 2, 1, 1]))
                .constant("axis", 1)
                .constant("batch_dims", 1)
                .expect(Tensor::ints(DType::I32, &[2, 2, 2], &[0, 1, 4, 5, 8, 9, 8, 9])),
            Case::new("batches, with an axis between them and the gathered one")
                .input("x", cube)
                .input("indices", Tensor::ints(DType::I32, &[2, 1], &[1, 0]))
                .constant("axis", 2)
                .constant("batch_dims", 1)
                .expect(Tensor::ints(DType::I32, &[2, 3, 1], &[1, 3, 5, 6, 8, 10])),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operands::{Bound, Operand, apply};

    #[test]
    fn indices_outside_are_refused() {
        let x = Tensor::ints(DType::I32, &[3], &[1, 2, 3]);
        for (i, strict) in [(3, false), (-4, false), (i32::MIN, false), (-1, true)] {
            let i = Tensor::ints(DType::I32, &[1], &[i]);
            let strict = Tensor::bools(&[], &[strict]);
            let mut bound = Bound::new(&Gather);
            for (name, t) in [("x", &x), ("indices", &i), ("validate_indices", &strict)] {
                bound.bind(&Gather, name, [Operand::Known(t)]).unwrap();
            }
            assert!(matches!(apply(&Gather, &bound), Err(OpError::Operand { param: "indices", .. })));
        }
    }
}
