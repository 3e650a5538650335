//! `reverse_sequence`: for each index of `batch_axis`, the first `lengths[index]` slices along `seq_axis` in opposite order.

use smallvec::smallvec;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::dims;
use crate::ops::support::strided::Nest;
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct ReverseSequence;

const X: usize = 0;
const LENGTHS: usize = 1;
const SEQ_AXIS: usize = 2;
const BATCH_AXIS: usize = 3;

/// The axis that is reversed and the axis of batches.
fn axes(x: &dyn Operands) -> Result<(usize, usize), OpError> {
    let shape = x.shape(X);
    let seq = dims::axis_or(x, SEQ_AXIS, shape.len(), 0)?;
    let batch = dims::axis_or(x, BATCH_AXIS, shape.len(), 0)?;
    if seq == batch {
        return Err(x.bad(SEQ_AXIS, format!("another axis than batch_axis, {batch}"), seq));
    }
    if x.shape(LENGTHS) != [shape[batch]] {
        return Err(x.bad(LENGTHS, format!("{} lengths, one per batch", shape[batch]), x.shape(LENGTHS)));
    }
    Ok((seq, batch))
}

impl Op for ReverseSequence {
    fn name(&self) -> &'static str {
        "reverse_sequence"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::required("x"),
                Param::required("lengths"),
                Param::optional("seq_axis"),
                Param::optional("batch_axis"),
            ]
        }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let ty = dims::numbers(x, X)?;
        axes(x)?;
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let (seq, batch) = axes(x)?;
        let shape = x.shape(X);
        dims::copy(x, X, &mut out[0])?;
        let strides = dims::strides(shape);
        for (b, &length) in x.i32s(LENGTHS)?.iter().enumerate() {
            let count = usize::try_from(length).ok().filter(|&n| n <= shape[seq]);
            let count = count.ok_or_else(|| x.bad(LENGTHS, format!("lengths up to {}", shape[seq]), length))?;
            if shape.contains(&0) || count == 0 {
                continue;
            }
            let first = b * strides[batch];
            let mut nest = Nest::at(first + (count - 1) * strides[seq], first);
            for (axis, &turns) in shape.iter().enumerate().filter(|&(axis, _)| axis != batch) {
                if axis == seq {
                    nest.push(count, strides[axis].wrapping_neg(), strides[axis]);
                } else {
                    nest.push(turns, strides[axis], strides[axis]);
                }
            }
            nest.copy(x.data(X)?, &mut out[0].data)?;
        }
        Ok(())
    }

    fn cases(&self) -> Vec<Case> {
        let x = Tensor::ints(DType::I32, &[2, 4], &[0, 1, 2, 3, 4, 5, 6, 7]);
        vec![
            Case::new("batches in front")
                .input("x", x.clone())
                .input("lengths", Tensor::ints(DType::I32, &[2], &[3, 0]))
                .constant("seq_axis", 1)
                .constant("batch_axis", 0)
                .expect(Tensor::ints(DType::I32, &[2, 4], &[2, 1, 0, 3, 4, 5, 6, 7])),
            Case::new("batches behind")
                .input("x", x)
                .input("lengths", Tensor::ints(DType::I16, &[4], &[2, 1, 2, 0]))
                .constant("batch_axis", -1)
                .expect(Tensor::ints(DType::I32, &[2, 4], &[4, 1, 6, 3, 0, 5, 2, 7])),
            Case::new("slices of several elements")
                .input("x", Tensor::floats(DType::F16, &[1, 2, 2], &[1.0, 2.0, 3.0, 4.0]))
                .input("lengths", Tensor::ints(DType::I32, &[1], &[2]))
                .constant("seq_axis", 1)
                .expect(Tensor::floats(DType::F16, &[1, 2, 2], &[3.0, 4.0, 1.0, 2.0])),
        ]
    }
}
