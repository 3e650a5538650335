//! Products of two tensors that are known at run time only: `y` is packed as a constant matrix would be, and meets the rows of
//! `x` in the kernels of those.

use anemone_kernels::Isa;
use anemone_kernels::columns::Columns;
use anemone_kernels::linear::{Linear, LinearF32, PANEL};
use anemone_kernels::words::{bytes_of, bytes_of_mut};

use super::{Product, X, Y, batch};
use crate::lower::{Context, Kernel, LowerOperands, Workers};
use crate::op::{OpError, Operands, Out};
use crate::ops::support::broadcast::{broadcast, runs};
use crate::types::Class;

/// Rows of `x` from which on packing `y` is worth it.
const ROWS: usize = 4;
/// Products of fewer multiplications are not worth it.
const LEAST: usize = 1 << 14;
/// Alignment of what is packed, in floats.
const ALIGN: usize = 16;
/// Columns of a piece of work. Fixed, so that results do not depend on the number of threads.
const PIECE: usize = 2 * PANEL;

/// The kernel for matrices of floats.
#[derive(Debug)]
pub(super) struct Both {
    isa: Isa,
    scratch: usize,
}

impl Both {
    pub(super) fn new(x: &dyn LowerOperands) -> Option<Self> {
        let operands: &dyn Operands = x;
        let floats = |param| operands.dtype(param).class() == Class::Float && operands.shape(param).len() > 1;
        let product = Product::new(operands).ok().filter(|_| floats(X) && floats(Y))?;
        product.is_large().then(|| Self { isa: Isa::detect(), scratch: product.scratch() })
    }
}

impl Product {
    fn is_large(&self) -> bool {
        self.m >= ROWS && self.m * self.n * self.k >= LEAST
    }

    fn packed(&self) -> usize {
        LinearF32::packed_len(self.n, self.k) / 4
    }

    /// Floats for `y` packed, and for `x` if it must be turned.
    fn scratch(&self) -> usize {
        ALIGN + self.packed() + if self.turned_x { self.m * self.k } else { 0 }
    }

    /// Packs `y`, one matrix.
    fn pack(&self, y: &[f32], packed: &mut [f32], workers: &dyn Workers) {
        let panel = LinearF32::packed_len(PANEL, self.k) / 4;
        workers.for_chunks(packed, panel, &|index, words| {
            LinearF32::pack_panel(index, self.n, self.k, y, !self.turned_y, bytes_of_mut(words));
        });
    }

    /// `x` (k, m) as (m, k).
    fn turn(&self, x: &[f32], turned: &mut [f32], workers: &dyn Workers) {
        let rows = (LEAST / self.k).max(1);
        workers.for_chunks(turned, rows * self.k, &|piece, turned| {
            for (i, row) in turned.chunks_exact_mut(self.k).enumerate() {
                let column = x[piece * rows + i..].iter().step_by(self.m);
                row.iter_mut().zip(column).for_each(|(to, &from)| *to = from);
            }
        });
    }
}

impl Kernel for Both {
    fn run(&self, x: &dyn Operands, out: &mut [Out<'_>], cx: &mut Context<'_>) -> Result<(), OpError> {
        let product = Product::new(x)?;
        let (a, b, out) = (x.f32s(X)?, x.f32s(Y)?, out[0].f32s()?);
        if out.is_empty() {
            return Ok(());
        }
        // Another shape of the same plan.
        if !product.is_large() || product.scratch() > cx.scratch.len() {
            return product.batches(x, a, b, out);
        }
        let Product { m, k, n, turned_x, .. } = product;
        let start = cx.scratch.as_ptr().align_offset(4 * ALIGN).min(ALIGN);
        let (packed, rest) = cx.scratch[start..].split_at_mut(product.packed());
        let turned = &mut rest[..if turned_x { m * k } else { 0 }];
        let (xb, yb) = (batch(x.shape(X)), batch(x.shape(Y)));
        let mut lies_packed = None;
        runs(&broadcast(xb, yb)?, [xb, yb], |run| {
            for t in 0..run.len {
                let (o, i, j) = (run.out + t, run.at[0] + t * run.step[0], run.at[1] + t * run.step[1]);
                if lies_packed != Some(j) {
                    product.pack(&b[j * k * n..(j + 1) * k * n], packed, cx.workers);
                    lies_packed = Some(j);
                }
                let mut rows = &a[i * m * k..(i + 1) * m * k];
                if turned_x {
                    product.turn(rows, turned, cx.workers);
                    rows = turned;
                }
                let matrix = Linear::F32(LinearF32::new(n, k, bytes_of(packed)));
                let mut outs = [Columns::new(&mut out[o * m * n..(o + 1) * m * n], n)];
                cx.workers.for_columns(&mut outs, PIECE, &|_, first, out| {
                    matrix.matmul_columns(self.isa, first..first + out.width(), rows, m, out);
                });
            }
        });
        Ok(())
    }

    fn scratch(&self) -> usize {
        self.scratch
    }
}
