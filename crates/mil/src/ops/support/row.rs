//! Products of one row, which a decoded token mostly consists of. Threads share them as [`Lasting`] work, so that none is
//! waited for when the system puts it aside.

use std::sync::Arc;

use anemone_kernels::columns::Columns;
use anemone_kernels::elementwise::{Binary, binary_in_place};
use anemone_kernels::linear::Activations;
use anemone_kernels::linear::tiles::Then;
use anemone_kernels::words::{bytes_of, bytes_of_mut};
use smallvec::SmallVec;

use super::matrix::Matrix;
use super::products::{Input, ROWS, SHARE, Term, integers};
use crate::lower::{Lasting, RESULTS, Workers};

const _: () = assert!(ROWS == RESULTS, "a piece is as many results as a thread may give at once");

/// A row times matrices; each piece is rows of one of them.
#[derive(Debug)]
pub(crate) struct Row {
    matrices: SmallVec<[Arc<Matrix>; 4]>,
    /// Whether there are two matrices of one shape, and results are `silu(x · firstᵀ) · (x · secondᵀ)`.
    gated: bool,
    k: usize,
    /// Floats of the input that are the row quantized; the row as it is may follow.
    quantized: usize,
    plain: usize,
}

impl Row {
    /// Products with several matrices. Nothing where they are not worth sharing.
    pub(crate) fn of(matrices: &[Arc<Matrix>], exact: bool) -> Option<Arc<dyn Lasting>> {
        Self::shared(matrices, exact, false)
    }

    /// A product with a gate. Nothing where it is not worth sharing.
    pub(crate) fn gated(matrices: &[Arc<Matrix>; 2], exact: bool) -> Option<Arc<dyn Lasting>> {
        Self::shared(matrices, exact, true)
    }

    fn shared(matrices: &[Arc<Matrix>], exact: bool, gated: bool) -> Option<Arc<dyn Lasting>> {
        let k = matrices.first()?.view().k();
        let rows: usize = matrices.iter().map(|m| m.view().rows()).sum();
        if rows * k < SHARE {
            return None;
        }
        let integers = |m: &Arc<Matrix>| integers(m, exact);
        let quantized = if matrices.iter().any(integers) { Activations::bytes(1, k) / 4 } else { 0 };
        let plain = if matrices.iter().all(integers) { 0 } else { k };
        Some(Arc::new(Self { matrices: matrices.into(), gated, k, quantized, plain }))
    }
}

impl Lasting for Row {
    fn inputs(&self) -> usize {
        self.quantized + self.plain
    }

    fn pieces(&self) -> usize {
        let matrices = if self.gated { &self.matrices[..1] } else { &self.matrices };
        matrices.iter().map(|m| m.view().rows().div_ceil(ROWS)).sum()
    }

    fn prepare(&self, x: &[f32], input: &mut [f32]) {
        let (words, plain) = input.split_at_mut(self.quantized);
        if self.quantized > 0 {
            Activations::quantize(self.matrices[0].isa(), x, 1, self.k, bytes_of_mut(words));
        }
        if self.plain > 0 {
            plain.copy_from_slice(x);
        }
    }

    fn piece(&self, input: &[f32], mut piece: usize, results: &mut [f32; RESULTS]) {
        let (words, plain) = input.split_at(self.quantized);
        let words = (self.quantized > 0).then(|| Activations::new(1, self.k, bytes_of(words)));
        let x = Input::row(plain, words);
        for matrix in &self.matrices {
            let rows = matrix.view().rows();
            if piece >= rows.div_ceil(ROWS) {
                piece -= rows.div_ceil(ROWS);
                continue;
            }
            let first = piece * ROWS;
            let width = ROWS.min(rows - first);
            let results = &mut results[..width];
            x.product(matrix, first, Then::default(), Columns::new(results, width));
            if self.gated {
                let mut up = [0.0; ROWS];
                x.product(&self.matrices[1], first, Then::default(), Columns::new(&mut up[..width], width));
                binary_in_place(matrix.isa(), Binary::SiluMul, results, &up[..width]);
            }
            return;
        }
    }
}

/// `work` on one row, with what the terms add to it; `false` if nothing was done.
pub(crate) fn share(
    work: &Arc<dyn Lasting>,
    x: &[f32],
    terms: &[Term<'_>],
    outs: &mut [Columns<'_>],
    workers: &dyn Workers,
) -> bool {
    workers.for_lasting(work, x, &mut |mut piece, results| {
        for (Term { matrix, bias, added }, out) in terms.iter().zip(&mut *outs) {
            let pieces = out.width().div_ceil(ROWS);
            if piece >= pieces {
                piece -= pieces;
                continue;
            }
            let first = piece * ROWS;
            let range = first..out.width().min(first + ROWS);
            let out = &mut out.row(0)[range.clone()];
            out.copy_from_slice(&results[..range.len()]);
            for more in [bias, added].into_iter().flatten() {
                binary_in_place(matrix.isa(), Binary::Add, out, &more[range.clone()]);
            }
            return;
        }
    })
}
