//! 1×1 convolutions: products of a constant matrix with the channels at each position.

use std::sync::Arc;

use anemone_kernels::columns::Columns;

use super::convolving::{Convolution, Layout};
use super::matrix::Matrix;
use super::products::{self, Term, integers};
use crate::lower::{Context, Kernel, LowerOperands};
use crate::op::{OpError, Operands, Out};
use crate::tensor::Data;

/// The product with a packed weight, at every position.
#[derive(Debug)]
pub struct Pointwise {
    matrix: Arc<Matrix>,
    exact: bool,
    x: usize,
    weight: usize,
    bias: usize,
    scratch: usize,
}

impl Pointwise {
    /// The kernel of a convolution that has one tap, one group, steps of one and no padding.
    pub fn new(x: &dyn LowerOperands, layout: Layout) -> Option<Self> {
        let (image, weight) = (x.ty_at(layout.x, 0), x.ty_at(layout.weight, 0).1);
        let ([_, channels, positions @ ..], [_, inputs, taps @ ..]) = (image.1, weight) else { return None };
        let strides = layout.windows.strides;
        let steps = x.count(strides) == 0
            || matches!(x.data_at(strides, 0), Some(Data::I32(steps)) if steps.iter().all(|&step| step == 1));
        // With one tap, the positions are as many as before only if nothing is added around them.
        let result = Convolution::new(x, layout).ok()?.result(crate::StaticType::new(image.0, image.1)).ok()?;
        let same = result.shape.get(2..) == Some(positions);
        if channels != inputs || taps.iter().any(|&n| n != 1) || !steps || !same || image.1.contains(&0) {
            return None;
        }
        let matrix = Matrix::new(&x.packed_at(layout.weight, 0)?, x.pack_cache())?;
        let (n, rows) = (positions.iter().product::<usize>(), matrix.view().rows());
        let turned = if n == 1 { 0 } else { n * (channels + rows) };
        let (exact, rows) = (x.exact(), if n == 1 { image.1[0] } else { n });
        let quantized = if integers(&matrix, exact) { products::scratch(rows, *channels) } else { 0 };
        let scratch = turned + quantized;
        Some(Self { matrix, exact, x: layout.x, weight: layout.weight, bias: layout.bias, scratch })
    }
}

impl Pointwise {
    fn product(&self, x: &[f32], bias: Option<&[f32]>, out: &mut [f32], cx: &mut Context<'_>) {
        let mut outs = [Columns::new(out, self.matrix.view().rows())];
        let terms = [Term { matrix: &self.matrix, bias, added: None }];
        products::products(x, &terms, self.exact, &mut outs, cx);
    }
}

impl Kernel for Pointwise {
    fn run(&self, x: &dyn Operands, out: &mut [Out<'_>], cx: &mut Context<'_>) -> Result<(), OpError> {
        let bias = if x.has(self.bias) { Some(x.f32s(self.bias)?) } else { None };
        let (image, channels) = (x.f32s(self.x)?, x.shape(self.x)[1]);
        let n: usize = x.shape(self.x)[2..].iter().product();
        let out = out[0].f32s()?;
        if n == 1 {
            self.product(image, bias, out, cx);
            return Ok(());
        }
        let rows = self.matrix.view().rows();
        let (columns, rest) = cx.scratch.split_at_mut(n * channels);
        let (results, rest) = rest.split_at_mut(n * rows);
        for (image, out) in image.chunks_exact(n * channels).zip(out.chunks_exact_mut(n * rows)) {
            turn(image, channels, n, columns);
            self.product(columns, bias, results, &mut Context { workers: cx.workers, scratch: &mut *rest });
            turn(results, n, rows, out);
        }
        Ok(())
    }

    fn scratch(&self) -> usize {
        self.scratch
    }

    fn holds(&self, param: usize) -> bool {
        param == self.weight
    }
}

/// Rows become columns, by blocks that a cache holds.
fn turn(from: &[f32], rows: usize, columns: usize, to: &mut [f32]) {
    const BLOCK: usize = 16;
    for first in (0..rows).step_by(BLOCK) {
        for column in 0..columns {
            for row in first..(first + BLOCK).min(rows) {
                to[column * rows + row] = from[row * columns + column];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::turn;

    #[test]
    fn turning_twice_changes_nothing() {
        let (rows, columns) = (35, 6);
        let from: Vec<f32> = (0..rows * columns).map(|n| n as f32).collect();
        let (mut once, mut twice) = (vec![0.0; from.len()], vec![0.0; from.len()]);
        turn(&from, rows, columns, &mut once);
        assert_eq!(once[..3], [0.0, 6.0, 12.0]);
        turn(&once, columns, rows, &mut twice);
        assert_eq!(from, twice);
    }
}
