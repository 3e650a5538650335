//! `softmax`: e to the power of the elements, divided by its sum along `axis` (the last if left out).

use anemone_kernels::Isa;
use anemone_kernels::elementwise::{Unary, unary_in_place};
use anemone_kernels::softmax::softmax;

use crate::case::Case;
use crate::lower::{Context, Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{floats, shaped, unary};
use crate::ops::support::spread::PIECE;
use crate::ops::support::{dims, elementwise, lanes};
use crate::types::Opset;

pub(super) struct Softmax;

impl Op for Softmax {
    fn name(&self) -> &'static str {
        "softmax"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::optional("axis")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        lanes::axis_or_last(x, 1, x.shape(0).len())?;
        elementwise::infer_float_unary(x)
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let (shape, data) = (x.shape(0), x.f32s(0)?);
        let out = out[0].f32s()?;
        lanes::Lanes::new(shape, &lanes::axis_or_last(x, 1, shape.len())?).for_each(|_, lane| {
            let most = lane.fold(data, f32::NEG_INFINITY, f32::max);
            lane.for_each(|_, at| out[at] = (data[at] - most).exp());
            let sum = lane.sum(out, |v| v);
            lane.for_each(|_, at| out[at] /= sum);
        });
        Ok(())
    }

    fn lower(&self, x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        elementwise::expect_float(x, 0).is_ok().then(|| Box::new(Lowered { isa: Isa::detect() }) as Box<dyn Kernel>)
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            unary(
                "the last axis if nothing is said",
                shaped(&[2, 3], &[0.0, 1.0, 2.0, 1000.0, 1000.0, -1000.0]),
                shaped(&[2, 3], &[0.090_030_57, 0.244_728_48, 0.665_240_94, 0.5, 0.5, 0.0]),
            ),
            unary(
                "another axis",
                shaped(&[2, 2], &[0.0, 1.0, 2.0, -1.0]),
                shaped(&[2, 2], &[0.119_202_92, 0.880_797_1, 0.880_797_1, 0.119_202_92]),
            )
            .constant("axis", 0),
            unary("minus infinity counts nothing", floats(&[f32::NEG_INFINITY, 3.0]), floats(&[0.0, 1.0])),
            unary("a row of nothing else has no softmax", floats(&[f32::NEG_INFINITY; 2]), floats(&[f32::NAN; 2])),
        ]
    }
}

/// Lanes that lie beside each other, and are computed together.
const BESIDE: usize = 64;

#[derive(Debug)]
struct Lowered {
    isa: Isa,
}

impl Kernel for Lowered {
    fn run(&self, x: &dyn Operands, out: &mut [Out<'_>], cx: &mut Context<'_>) -> Result<(), OpError> {
        let (shape, data) = (x.shape(0), x.f32s(0)?);
        let axis = dims::axis_or(x, 1, shape.len(), -1)?;
        let (n, beside) = (shape[axis], shape[axis + 1..].iter().product::<usize>());
        let together = (PIECE / (n * beside).max(1)).max(1) * n * beside;
        cx.workers.for_chunks(out[0].f32s()?, together.max(1), &|piece, out| {
            out.copy_from_slice(&data[piece * together..][..out.len()]);
            if beside == 1 {
                softmax(self.isa, out, n);
            } else {
                out.chunks_exact_mut(n * beside).for_each(|block| self.across(block, beside));
            }
        });
        Ok(())
    }
}

impl Lowered {
    /// The softmax of each column of rows of `width` elements.
    fn across(&self, block: &mut [f32], width: usize) {
        for first in (0..width).step_by(BESIDE) {
            let columns = first..width.min(first + BESIDE);
            let (mut most, mut sums) = ([f32::NEG_INFINITY; BESIDE], [0.0; BESIDE]);
            for row in block.chunks_exact(width) {
                most.iter_mut().zip(&row[columns.clone()]).for_each(|(m, &v)| *m = m.max(v));
            }
            for row in block.chunks_exact_mut(width) {
                let row = &mut row[columns.clone()];
                row.iter_mut().zip(&most).for_each(|(v, m)| *v -= m);
                unary_in_place(self.isa, Unary::Exp, row);
                sums.iter_mut().zip(&*row).for_each(|(sum, v)| *sum += v);
            }
            for row in block.chunks_exact_mut(width) {
                row[columns.clone()].iter_mut().zip(&sums).for_each(|(v, sum)| *v /= sum);
            }
        }
    }
}
