//! Products of rows with constant matrices: what `linear` and the fused operations around it lower to.
//!
//! Where a matrix is of integers, the rows are quantized (once for all matrices that they meet) and multiplied as integers,
//! unless the plan is exact; see `docs/numerics.md`.

use std::sync::Arc;

use anemone_kernels::Isa;
use anemone_kernels::columns::Columns;
use anemone_kernels::elementwise::{Binary, binary_in_place};
use anemone_kernels::linear::tiles::Then;
use anemone_kernels::linear::{Activations, Linear, PANEL, Tiles, integer, tiles};
use anemone_kernels::words::{bytes_of, bytes_of_mut};
use smallvec::SmallVec;

use super::matrix::Matrix;
use super::row::{Row, share};
use crate::lower::{Context, Kernel, Lasting, LowerOperands};
use crate::op::{OpError, Operands, Out};
use crate::types::elements;

/// Rows of a matrix that one piece of work computes. Fixed, so that results do not depend on the number of threads.
pub(crate) const ROWS: usize = 2 * PANEL;
/// Products of fewer multiplications than this are not worth sharing.
pub(super) const SHARE: usize = 1 << 15;
/// Alignment of quantized rows, in floats.
const ALIGN: usize = 16;

/// One product, `x · Wᵀ`, and what is added to it.
pub(crate) struct Term<'a> {
    pub(crate) matrix: &'a Matrix,
    /// A number for each row of the matrix.
    pub(crate) bias: Option<&'a [f32]>,
    /// A number for each result.
    pub(crate) added: Option<&'a [f32]>,
}

/// Rows that meet matrices: as they are, and quantized if any matrix wants them so.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    x: &'a [f32],
    n: usize,
    quantized: Quantized<'a>,
}

#[derive(Clone, Copy)]
enum Quantized<'a> {
    Not,
    Blocks(Activations<'a>),
    Tiles(Tiles<'a>),
}

/// Rows that lie together when quantized, in either way.
const TOGETHER: usize = tiles::TOKENS;
const _: () = assert!(TOGETHER.is_multiple_of(integer::TOGETHER));

/// Floats of scratch space that `n` rows of `k` take when quantized.
pub(crate) fn scratch(n: usize, k: usize) -> usize {
    Activations::bytes(n, k).max(Tiles::bytes(n, k)) / 4 + ALIGN
}

/// Whether products with the matrix are of integers, in a plan that is `exact` or not.
pub(crate) fn integers(matrix: &Matrix, exact: bool) -> bool {
    !exact && matrix.view().has_int8()
}

impl<'a> Input<'a> {
    /// Rows of `k` elements, quantized into the scratch space if `integers`.
    pub(crate) fn new(isa: Isa, x: &'a [f32], k: usize, integers: bool, cx: &'a mut Context<'_>) -> Self {
        let n = x.len().checked_div(k).unwrap_or(0);
        if !integers {
            return Self { x, n, quantized: Quantized::Not };
        }
        let tiles = Tiles::fit(isa, n);
        let bytes = if tiles.is_some() { Tiles::bytes } else { Activations::bytes };
        let start = cx.scratch.as_ptr().align_offset(4 * ALIGN).min(ALIGN);
        let words = &mut cx.scratch[start..][..bytes(n, k) / 4];
        // Rows that lie together lie apart from the others.
        let (x_together, words_together) = (TOGETHER * k, bytes(TOGETHER, k) / 4);
        let piece = (SHARE / x_together.max(1)).max(1);
        cx.workers.for_chunks(words, piece * words_together, &|i, words| {
            let x = x[i * piece * x_together..].chunks(x_together);
            for (x, words) in x.zip(words.chunks_mut(words_together)) {
                let (n, into) = (x.len() / k, bytes_of_mut(words));
                match tiles {
                    Some(amx) => drop(Tiles::quantize(amx, x, n, k, into)),
                    None => drop(Activations::quantize(isa, x, n, k, into)),
                }
            }
        });
        let bytes = bytes_of(words);
        let quantized = match tiles {
            Some(amx) => Quantized::Tiles(Tiles::new(amx, n, k, bytes)),
            None => Quantized::Blocks(Activations::new(n, k, bytes)),
        };
        Self { x, n, quantized }
    }

    /// One row that was prepared before.
    pub(super) fn row(x: &'a [f32], quantized: Option<Activations<'a>>) -> Self {
        Self { x, n: 1, quantized: quantized.map_or(Quantized::Not, Quantized::Blocks) }
    }

    /// Rows `from..to`; `from` is a multiple of [`TOGETHER`], and so is `to` unless it is the end.
    fn rows(&self, from: usize, to: usize, k: usize) -> Self {
        let quantized = match self.quantized {
            Quantized::Not => Quantized::Not,
            Quantized::Blocks(q) => Quantized::Blocks(q.tokens(from..to)),
            Quantized::Tiles(q) => Quantized::Tiles(q.tokens(from..to)),
        };
        Self { x: &self.x[from * k..to * k], n: to - from, quantized }
    }

    /// The product with rows `first..` of a matrix, as many as there are columns in `out`, and what follows it.
    pub(super) fn product(&self, matrix: &Matrix, first: usize, then: Then<'_>, mut out: Columns<'_>) {
        let (w, isa, width) = (matrix.view(), matrix.isa(), out.width());
        let rows = first..first + width;
        match self.quantized {
            Quantized::Tiles(x) if w.has_int8() => return w.matmul_tiles_columns(rows, x, then, out),
            Quantized::Blocks(x) if w.has_int8() => w.matmul_int8_columns(isa, rows, x, out.part(0..width)),
            _ => w.matmul_columns(isa, rows, self.x, self.n, out.part(0..width)),
        }
        for t in 0..self.n {
            if let Some(bias) = then.bias {
                binary_in_place(isa, Binary::Add, out.row(t), bias);
            }
            if let Some((added, stride)) = then.added {
                binary_in_place(isa, Binary::Add, out.row(t), &added[t * stride..][..width]);
            }
        }
    }
}

/// How many columns of results a piece of work has, for products of `n` rows of `k` with `rows` rows in all.
fn piece(n: usize, rows: usize, k: usize) -> usize {
    if n * rows * k < SHARE { rows.next_multiple_of(PANEL) } else { ROWS }
}

/// The products of the rows of `x` (n, k) with several matrices, each into its own of `outs` (n, rows of the matrix).
pub(crate) fn products(x: &[f32], terms: &[Term<'_>], exact: bool, outs: &mut [Columns<'_>], cx: &mut Context<'_>) {
    let Some(first) = terms.first() else { return };
    let (isa, k) = (first.matrix.isa(), first.matrix.view().k());
    let rows = terms.iter().map(|t| t.matrix.view().rows()).sum();
    let workers = cx.workers;
    let x = Input::new(isa, x, k, terms.iter().any(|t| integers(t.matrix, exact)), cx);
    workers.for_columns(outs, piece(x.n, rows, k), &|i, first, out| {
        let Term { matrix, bias, added } = &terms[i];
        let then = Then {
            bias: bias.map(|bias| &bias[first..][..out.width()]),
            added: added.map(|added| (added.get(first..).unwrap_or_default(), matrix.view().rows())),
        };
        x.product(matrix, first, then, out);
    });
}

/// `silu(x · gateᵀ) · (x · upᵀ)`, element by element, into `out` (n, rows of either matrix).
pub(crate) fn gated(
    x: &[f32],
    [gate, up]: [&Matrix; 2],
    biases: [Option<&[f32]>; 2],
    exact: bool,
    out: &mut [f32],
    cx: &mut Context<'_>,
) {
    /// Rows of `x` whose upper products wait on the stack.
    const WAITING: usize = 4 * TOGETHER;
    let (isa, k, rows) = (gate.isa(), gate.view().k(), gate.view().rows());
    let workers = cx.workers;
    let x = Input::new(isa, x, k, integers(gate, exact) || integers(up, exact), cx);
    let piece = piece(x.n, 2 * rows, k).min(ROWS);
    workers.for_columns(&mut [Columns::new(out, rows)], piece, &|_, first, mut out| {
        let width = out.width();
        let biases = biases.map(|bias| bias.map(|bias| &bias[first..][..width]));
        let (w, u) = (gate.view(), up.view());
        if let Quantized::Tiles(x) = x.quantized
            && w.has_int8()
            && w.gates(&u)
        {
            return Linear::gated_tiles_columns([&w, &u], first..first + width, x, biases, out);
        }
        let then = |bias| Then { bias, added: None };
        x.product(gate, first, then(biases[0]), out.part(0..width));
        let mut waiting = [0.0; WAITING * ROWS];
        for from in (0..x.n).step_by(WAITING) {
            let x = x.rows(from, x.n.min(from + WAITING), k);
            let waiting = &mut waiting[..x.n * width];
            x.product(up, first, then(biases[1]), Columns::new(waiting, width));
            for (t, up) in waiting.chunks_exact(width).enumerate() {
                binary_in_place(isa, Binary::SiluMul, out.row(from + t), up);
            }
        }
    });
}

/// Which parameters of an operation of products are what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Roles {
    pub(crate) x: usize,
    /// Matrices, one for each result.
    pub(crate) weights: usize,
    /// None, or one for each result.
    pub(crate) biases: Option<usize>,
    /// None, or one for each result, of its shape.
    pub(crate) added: Option<usize>,
}

/// The kernel of an operation of products.
#[derive(Debug)]
pub(crate) struct Lowered {
    roles: Roles,
    matrices: SmallVec<[Arc<Matrix>; 4]>,
    exact: bool,
    scratch: usize,
    row: Option<Arc<dyn Lasting>>,
}

impl Lowered {
    /// For operands whose weights are constants.
    pub(crate) fn new(roles: Roles, x: &dyn LowerOperands) -> Option<Self> {
        let matrices: Option<SmallVec<_>> = (0..x.count(roles.weights)).map(|i| packed(x, roles.weights, i)).collect();
        Some(Self::of(roles, matrices?, x))
    }

    /// For weights that are packed already.
    pub(crate) fn of(roles: Roles, matrices: SmallVec<[Arc<Matrix>; 4]>, x: &dyn LowerOperands) -> Self {
        let exact = x.exact();
        let integers = matrices.iter().any(|m| integers(m, exact));
        let scratch = if integers { rows_scratch(x, roles.x) } else { 0 };
        Self { roles, row: Row::of(&matrices, exact), matrices, exact, scratch }
    }
}

/// The constant matrix that an argument is.
pub(crate) fn packed(x: &dyn LowerOperands, param: usize, index: usize) -> Option<Arc<Matrix>> {
    Matrix::new(&x.packed_at(param, index)?, x.pack_cache())
}

/// Floats of scratch space that the rows of an operand take when quantized.
pub(crate) fn rows_scratch(x: &dyn LowerOperands, param: usize) -> usize {
    let shape = x.ty_at(param, 0).1;
    shape.split_last().map_or(0, |(&k, rows)| scratch(elements(rows), k))
}

impl Kernel for Lowered {
    fn run(&self, x: &dyn Operands, out: &mut [Out<'_>], cx: &mut Context<'_>) -> Result<(), OpError> {
        let Roles { biases, added, .. } = self.roles;
        let given = |param: Option<usize>, i: usize| match param {
            Some(param) if x.has(param) => x.f32s_at(param, i).map(Some),
            _ => Ok(None),
        };
        let mut terms: SmallVec<[Term<'_>; 4]> = SmallVec::new();
        let mut outs: SmallVec<[Columns<'_>; 4]> = SmallVec::new();
        for (i, (matrix, out)) in self.matrices.iter().zip(out).enumerate() {
            terms.push(Term { matrix, bias: given(biases, i)?, added: given(added, i)? });
            outs.push(Columns::new(out.f32s()?, matrix.view().rows()));
        }
        let x = x.f32s(self.roles.x)?;
        if let Some(row) = &self.row
            && outs[0].rows() == 1
            && share(row, x, &terms, &mut outs, cx.workers)
        {
            return Ok(());
        }
        products(x, &terms, self.exact, &mut outs, cx);
        Ok(())
    }

    fn scratch(&self) -> usize {
        self.scratch
    }

    fn lasting(&self) -> Option<&Arc<dyn Lasting>> {
        self.row.as_ref()
    }

    fn holds(&self, param: usize) -> bool {
        param == self.roles.weights
    }
}
