//! Convolutions as products: what each window covers of the image is a row, which meets the weight as a matrix.

use std::sync::Arc;

use anemone_kernels::columns::Columns;

use super::convolving::{Convolution, Layout};
use super::matrix::Matrix;
use super::products::{self, Term};
use crate::lower::{Context, Kernel, LowerOperands};
use crate::op::{OpError, Operands, Out};

/// A convolution of one group with a packed weight.
#[derive(Debug)]
pub struct Patches {
    matrix: Arc<Matrix>,
    layout: Layout,
    /// Elements of a patch.
    k: usize,
    /// Patches that are laid out at a time.
    block: usize,
}

/// Floats of the patches that are laid out at a time: as many as a cache holds.
const LAID_OUT: usize = 1 << 17;
/// Patches that one piece of work lays out.
const PIECE: usize = 8;

impl Patches {
    /// The kernel of a convolution of one group with a constant weight.
    pub fn new(x: &dyn LowerOperands, layout: Layout) -> Option<Self> {
        let (_, k) = Convolution::new(x, layout).ok()?.patches()?;
        let matrix = Matrix::flattened(&x.packed_at(layout.weight, 0)?, x.pack_cache())?;
        let block = (LAID_OUT / k).clamp(16, 512) / PIECE * PIECE;
        Some(Self { matrix, layout, k, block })
    }
}

impl Kernel for Patches {
    fn run(&self, x: &dyn Operands, out: &mut [Out<'_>], cx: &mut Context<'_>) -> Result<(), OpError> {
        let Layout { x: image, bias, .. } = self.layout;
        let convolution = Convolution::new(x, self.layout)?;
        let windows = convolution.patches().map_or(0, |(windows, _)| windows);
        let bias = if x.has(bias) { Some(x.f32s(bias)?) } else { None };
        let (images, size) = (x.f32s(image)?, x.shape(image)[1..].iter().product::<usize>());
        let (rows, out) = (self.matrix.view().rows(), out[0].f32s()?);
        if windows == 0 || size == 0 {
            return Ok(());
        }
        let (patches, rest) = cx.scratch.split_at_mut(self.block * self.k);
        let (results, rest) = rest.split_at_mut(self.block * rows);
        for (image, out) in images.chunks_exact(size).zip(out.chunks_exact_mut(windows * rows)) {
            for first in (0..windows).step_by(self.block) {
                let n = self.block.min(windows - first);
                let (patches, results) = (&mut patches[..n * self.k], &mut results[..n * rows]);
                cx.workers.for_chunks(patches, PIECE * self.k, &|piece, patches| {
                    for (i, patch) in patches.chunks_exact_mut(self.k).enumerate() {
                        convolution.patch(image, first + piece * PIECE + i, patch);
                    }
                });
                let terms = [Term { matrix: &self.matrix, bias, added: None }];
                let mut outs = [Columns::new(results, rows)];
                let mut context = Context { workers: cx.workers, scratch: &mut *rest };
                products::products(patches, &terms, true, &mut outs, &mut context);
                for (row, plane) in out.chunks_exact_mut(windows).enumerate() {
                    let from = results[row..].iter().step_by(rows);
                    plane[first..first + n].iter_mut().zip(from).for_each(|(to, &from)| *to = from);
                }
            }
        }
        Ok(())
    }

    fn scratch(&self) -> usize {
        self.block * (self.k + self.matrix.view().rows())
    }

    fn holds(&self, param: usize) -> bool {
        param == self.layout.weight
    }
}
