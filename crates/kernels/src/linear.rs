//! Products with a weight matrix: `y[n, rows] = x[n, k] · Wᵀ`, the weights compressed in memory, the arithmetic in f32.
//!
//! # Layout
//!
//! All kinds share it. `W` is cut into **panels** of sixteen rows (the last one padded with zero weights), a panel into
//! groups of eight columns; a vector holds one column of a panel, one row a lane. So a product needs no horizontal sums,
//! the weights are read once from front to back, and an activation is one broadcast operand.
//!
//! # Order of the sums
//!
//! The columns are cut into **chunks** of 32 (16 for quantization blocks of 16). Inside a chunk one chain of fused
//! multiply-adds runs in column order from zero; the sums of the chunks are added in order, each times its scale. This
//! order depends on nothing but `k` and the block size, so the bits of `y[t, r]` depend neither on the rows asked for, nor
//! on how many tokens are computed together, nor on the instruction set.
//!
//! # Roofline
//!
//! One token: every weight byte is read once, two operations a weight. Weights that unpack to f32 cost two to five vector
//! instructions per sixteen weights, which the loads hide for f16 and int8, and nearly hide for int4.
//! Many tokens: a tile of [`Lanes::TILE`] tokens unpacks a column once; then the fused multiply-adds are the limit.

mod blocks;
mod float;
pub mod integer;
mod lut;
#[cfg(test)]
pub(crate) mod noise;
mod q4;
mod q8;
#[cfg(test)]
mod tests;
pub mod tiles;

pub use blocks::{BlockShape, ScaleType};
pub use float::{LinearF16, LinearF32};
pub use integer::Activations;
pub use lut::{LinearLut, LutShape};
pub use q4::LinearQ4;
pub use q8::LinearQ8;
pub use tiles::Tiles;

use crate::columns::Columns;
use crate::isa::{Isa, Kernel};
use crate::lanes::{LANES, Lanes, store_part};
use std::ops::Range;

/// The height of a panel: row ranges start at a multiple of it, and end at one or at the last row.
pub const PANEL: usize = LANES;

/// A weight matrix of any kind.
#[derive(Clone, Copy, Debug)]
pub enum Linear<'a> {
    /// f32 weights.
    F32(LinearF32<'a>),
    /// f16 weights.
    F16(LinearF16<'a>),
    /// 8-bit integers with a scale per row or per block.
    Q8(LinearQ8<'a>),
    /// 4-bit integers with a scale per row or per block.
    Q4(LinearQ4<'a>),
    /// Palettes.
    Lut(LinearLut<'a>),
}

impl Linear<'_> {
    /// The rows of the matrix: the outputs of the layer.
    pub fn rows(&self) -> usize {
        match self {
            Self::F32(w) => w.rows(),
            Self::F16(w) => w.rows(),
            Self::Q8(w) => w.rows(),
            Self::Q4(w) => w.rows(),
            Self::Lut(w) => w.rows(),
        }
    }

    /// The columns of the matrix: the inputs of the layer.
    pub fn k(&self) -> usize {
        match self {
            Self::F32(w) => w.k(),
            Self::F16(w) => w.k(),
            Self::Q8(w) => w.k(),
            Self::Q4(w) => w.k(),
            Self::Lut(w) => w.k(),
        }
    }

    /// `out[t, r - rows.start] = Σ x[t, c] · W[r, c]` for `r` in `rows`; see [`LinearF16::matmul`].
    pub fn matmul(&self, isa: Isa, rows: Range<usize>, x: &[f32], n: usize, out: &mut [f32]) {
        let width = rows.len();
        self.matmul_columns(isa, rows, x, n, Columns::new(out, width));
    }

    /// [`Self::matmul`] into columns of a wider matrix: `out` has `n` rows and as many columns as there are `rows`.
    pub fn matmul_columns(&self, isa: Isa, rows: Range<usize>, x: &[f32], n: usize, out: Columns<'_>) {
        match self {
            Self::F32(w) => w.matmul_columns(isa, rows, x, n, out),
            Self::F16(w) => w.matmul_columns(isa, rows, x, n, out),
            Self::Q8(w) => w.matmul_columns(isa, rows, x, n, out),
            Self::Q4(w) => w.matmul_columns(isa, rows, x, n, out),
            Self::Lut(w) => w.matmul_columns(isa, rows, x, n, out),
        }
    }

    /// Whether [`Self::matmul_int8`] can be used.
    pub fn has_int8(&self) -> bool {
        match self {
            Self::F32(_) | Self::F16(_) => false,
            Self::Lut(w) => w.has_int8(),
            Self::Q8(w) => w.has_int8(),
            Self::Q4(w) => w.has_int8(),
        }
    }

    /// The product with quantized activations, in integers, where [`Self::has_int8`]; see [`integer`].
    pub fn matmul_int8(&self, isa: Isa, rows: Range<usize>, x: Activations<'_>, out: &mut [f32]) {
        let width = rows.len();
        self.matmul_int8_columns(isa, rows, x, Columns::new(out, width));
    }

    /// [`Self::matmul_int8`] into columns of a wider matrix, with a row for each token.
    pub fn matmul_int8_columns(&self, isa: Isa, rows: Range<usize>, x: Activations<'_>, out: Columns<'_>) {
        match self {
            Self::Q8(w) => w.matmul_int8_columns(isa, rows, x, out),
            Self::Q4(w) => w.matmul_int8_columns(isa, rows, x, out),
            Self::Lut(w) => w.matmul_int8_columns(isa, rows, x, out),
            _ => panic!("there is no integer product with these weights"),
        }
    }
}

/// A kind of packed weights, to be seen panel by panel.
pub(crate) trait Weights: Copy {
    type Panel<S: Lanes>: Panel<S>;
    fn panel<S: Lanes>(self, s: S, index: usize) -> Self::Panel<S>;
}

/// Sixteen rows of a weight matrix, seen 32 columns at a time.
pub(crate) trait Panel<S: Lanes> {
    /// What 32 columns, or 16 of them, share: scale, offset, table.
    type Chunk: Copy;
    /// 32 columns as they lie in memory.
    type Lines: Copy;
    /// Eight columns in registers.
    type Group: Copy;
    /// Whether chunks are 16 columns wide, not 32.
    fn narrow(&self) -> bool {
        false
    }
    fn chunk(&self, s: S, chunk: usize) -> Self::Chunk;
    /// Columns `32 * index` to `32 * index + 32`. Every check of a length is here and in `chunk`: a branch between the
    /// sums would have the compiler keep operands alive up to it.
    fn lines(&self, index: usize) -> Self::Lines;
    /// Asks for the memory that lies [`AHEAD`] of these lines.
    fn prefetch(&self, s: S, lines: Self::Lines);
    /// Group `g` in 0..4.
    fn group(&self, s: S, lines: Self::Lines, g: usize) -> Self::Group;
    /// Column `j` (0..8) of the group.
    fn column(&self, s: S, chunk: &Self::Chunk, group: &Self::Group, j: usize) -> S::F;
    /// `total` with the sum of a chunk added.
    fn close(&self, s: S, chunk: &Self::Chunk, sum: S::F, total: S::F) -> S::F;
}

/// How far ahead of use weights are asked for, in bytes.
pub(crate) const AHEAD: usize = 4096;

/// Checks the arguments of a product: every message names what is wrong with which numbers.
pub(crate) fn check(what: &str, shape: (usize, usize), rows: &Range<usize>, x: usize, n: usize, out: &Columns<'_>) {
    let (all, k) = shape;
    assert!(rows.start <= rows.end && rows.end <= all, "{what}: rows {rows:?} of {all}");
    assert!(rows.start.is_multiple_of(PANEL), "{what}: rows {rows:?} start inside a panel of {PANEL}");
    assert!(rows.end.is_multiple_of(PANEL) || rows.end == all, "{what}: rows {rows:?} end inside a panel of {PANEL}");
    assert_eq!(x, n * k, "{what}: x has {x} values, {n} tokens of {k} need {}", n * k);
    // Columns of no width have no rows to speak of.
    let fits = out.width() == rows.len() && (out.rows() == n || rows.is_empty());
    let (found, width) = (out.rows() * out.width(), rows.len());
    assert!(fits, "{what}: out has {found} values, {n} tokens of {width} rows need another size");
}

/// The product as a kernel; lengths are already checked.
pub(crate) struct Product<'a, W> {
    pub(crate) weights: W,
    pub(crate) rows: Range<usize>,
    pub(crate) k: usize,
    pub(crate) x: &'a [f32],
    pub(crate) n: usize,
    pub(crate) out: Columns<'a>,
}

impl<W: Weights> Kernel for Product<'_, W> {
    type Out = ();
    #[inline(always)]
    fn run<S: Lanes>(mut self, s: S) {
        for index in self.rows.start / PANEL..self.rows.end.div_ceil(PANEL) {
            let panel = self.weights.panel(s, index);
            let mut t = 0;
            while S::TILE >= 8 && self.n - t >= 8 {
                self.tokens::<S, _, 8>(s, &panel, index, t);
                t += 8;
            }
            while S::TILE >= 4 && self.n - t >= 4 {
                self.tokens::<S, _, 4>(s, &panel, index, t);
                t += 4;
            }
            while self.n > t {
                self.tokens::<S, _, 1>(s, &panel, index, t);
                t += 1;
            }
        }
    }
}

impl<W: Weights> Product<'_, W> {
    /// `T` tokens from `first` on against one panel.
    #[inline(always)]
    fn tokens<S: Lanes, P: Panel<S>, const T: usize>(&mut self, s: S, panel: &P, index: usize, first: usize) {
        let k = self.k;
        let mut x: [&[[f32; 32]]; T] = [&[]; T];
        let mut tail = [[[0.0; 32]; 1]; T];
        for t in 0..T {
            let (whole, rest) = self.x[(first + t) * k..][..k].as_chunks();
            x[t] = whole;
            tail[t][0][..rest.len()].copy_from_slice(rest);
        }
        let mut totals = [s.splat(0.0); T];
        for block in 0..k.div_ceil(32) {
            let mut values = [&[0.0; 32]; T];
            for t in 0..T {
                values[t] = x[t].get(block).unwrap_or(&tail[t][0]);
            }
            let halves = if panel.narrow() && k - 32 * block <= 16 { 1 } else { 2 };
            add(s, panel, block, halves, &values, &mut totals);
        }
        let row = index * PANEL - self.rows.start;
        let width = self.rows.len();
        for t in 0..T {
            store_part(s, totals[t], &mut self.out.row(first + t)[row..width.min(row + PANEL)]);
        }
    }
}

/// Adds columns `32 · block ..` of a panel to the totals, of narrow chunks so many `halves`.
#[inline(always)]
fn add<S: Lanes, P: Panel<S>, const T: usize>(
    s: S,
    panel: &P,
    block: usize,
    halves: usize,
    x: &[&[f32; 32]; T],
    totals: &mut [S::F; T],
) {
    let narrow = panel.narrow();
    let mut chunk = panel.chunk(s, if narrow { 2 * block } else { block });
    let lines = panel.lines(block);
    if T == 1 {
        panel.prefetch(s, lines);
    }
    let mut sums = [s.splat(0.0); T];
    for half in 0..2 {
        for g in 2 * half..2 * half + 2 {
            let group = panel.group(s, lines, g);
            macro_rules! columns {
                ($($j:expr),*) => {$(
                    let w = panel.column(s, &chunk, &group, $j);
                    for t in 0..T {
                        sums[t] = s.fma(w, s.splat(x[t][8 * g + $j]), sums[t]);
                    }
                )*};
            }
            if S::TILE == 1 {
                for j in 0..8 {
                    columns!(j);
                }
            } else {
                columns!(0, 1, 2, 3, 4, 5, 6, 7);
            }
        }
        if narrow && half == 0 {
            for t in 0..T {
                totals[t] = panel.close(s, &chunk, sums[t], totals[t]);
                sums[t] = s.splat(0.0);
            }
            if halves == 1 {
                return;
            }
            chunk = panel.chunk(s, 2 * block + 1);
        }
    }
    for t in 0..T {
        totals[t] = panel.close(s, &chunk, sums[t], totals[t]);
    }
}
