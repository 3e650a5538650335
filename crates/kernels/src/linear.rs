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
mod q4;
mod q8;
#[cfg(test)]
mod tests;

pub use blocks::{BlockShape, ScaleType};
pub use float::{LinearF16, LinearF32};
pub use integer::Activations;
pub use lut::{LinearLut, LutShape};
pub use q4::LinearQ4;
pub use q8::LinearQ8;

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
        match self {
            Self::F32(w) => w.matmul(isa, rows, x, n, out),
            Self::F16(w) => w.matmul(isa, rows, x, n, out),
            Self::Q8(w) => w.matmul(isa, rows, x, n, out),
            Self::Q4(w) => w.matmul(isa, rows, x, n, out),
            Self::Lut(w) => w.matmul(isa, rows, x, n, out),
        }
    }

    /// Whether [`Self::matmul_int8`] can be used.
    pub fn has_int8(&self) -> bool {
        match self {
            Self::F32(_) | Self::F16(_) | Self::Lut(_) => false,
            Self::Q8(w) => w.has_int8(),
            Self::Q4(w) => w.has_int8(),
        }
    }

    /// The product with quantized activations, in integers, where [`Self::has_int8`]; see [`integer`].
    pub fn matmul_int8(&self, isa: Isa, rows: Range<usize>, x: Activations<'_>, out: &mut [f32]) {
        match self {
            Self::Q8(w) => w.matmul_int8(isa, rows, x, out),
            Self::Q4(w) => w.matmul_int8(isa, rows, x, out),
            _ => panic!("there is no integer product with these weights"),
        }
    }
}

/// A kind of packed weights, to be seen panel by panel.
pub(crate) trait Weights: Copy {
    type Panel<S: Lanes>: Panel<S>;
    fn panel<S: Lanes>(self, s: S, index: usize) -> Self::Panel<S>;
}

/// Sixteen rows of a weight matrix.
pub(crate) trait Panel<S: Lanes> {
    /// What the columns of a chunk share: scale, offset, table.
    type Chunk: Copy;
    /// Eight columns as they lie in memory.
    type Group: Copy;
    /// How many groups of eight columns make a chunk: 4 or 2.
    fn groups(&self) -> usize;
    fn chunk(&self, s: S, chunk: usize) -> Self::Chunk;
    /// `group` counts from the start of the panel.
    fn group(&self, s: S, group: usize) -> Self::Group;
    /// Asks for the memory that `group` a few KiB later will need.
    fn prefetch(&self, s: S, group: usize);
    /// Column `j` (0..8) of the group.
    fn column(&self, s: S, chunk: &Self::Chunk, group: &Self::Group, j: usize) -> S::F;
    /// `total` with the sum of a chunk added.
    fn close(&self, s: S, chunk: &Self::Chunk, sum: S::F, total: S::F) -> S::F;
}

/// How far ahead of use weights are asked for, in bytes.
pub(crate) const AHEAD: usize = 4096;

/// Checks the arguments of a product: every message names what is wrong with which numbers.
pub(crate) fn check(what: &str, shape: (usize, usize), rows: &Range<usize>, x: usize, n: usize, out: usize) {
    let (all, k) = shape;
    assert!(rows.start <= rows.end && rows.end <= all, "{what}: rows {rows:?} of {all}");
    assert!(rows.start.is_multiple_of(PANEL), "{what}: rows {rows:?} start inside a panel of {PANEL}");
    assert!(rows.end.is_multiple_of(PANEL) || rows.end == all, "{what}: rows {rows:?} end inside a panel of {PANEL}");
    assert_eq!(x, n * k, "{what}: x has {x} values, {n} tokens of {k} need {}", n * k);
    assert_eq!(
        out,
        n * rows.len(),
        "{what}: out has {out} values, {n} tokens of {} rows need another size",
        rows.len()
    );
}

/// The product as a kernel; lengths are already checked.
pub(crate) struct Product<'a, W> {
    pub(crate) weights: W,
    pub(crate) rows: Range<usize>,
    pub(crate) k: usize,
    pub(crate) x: &'a [f32],
    pub(crate) n: usize,
    pub(crate) out: &'a mut [f32],
}

impl<W: Weights> Kernel for Product<'_, W> {
    type Out = ();
    #[inline(always)]
    fn run<S: Lanes>(mut self, s: S) {
        for index in self.rows.start / PANEL..self.rows.end.div_ceil(PANEL) {
            let panel = self.weights.panel(s, index);
            let mut t = 0;
            while S::TILE >= 8 && self.n - t >= 8 {
                self.tokens::<S, _, 8, 1>(s, &panel, index, t);
                t += 8;
            }
            while S::TILE >= 4 && self.n - t >= 4 {
                self.tokens::<S, _, 4, 1>(s, &panel, index, t);
                t += 4;
            }
            while self.n > t {
                if S::TILE == 1 {
                    self.tokens::<S, _, 1, 1>(s, &panel, index, t);
                } else {
                    self.tokens::<S, _, 1, 4>(s, &panel, index, t);
                }
                t += 1;
            }
        }
    }
}

impl<W: Weights> Product<'_, W> {
    /// `T` tokens from `first` on against one panel, `C` chunks side by side.
    #[inline(always)]
    fn tokens<S: Lanes, P: Panel<S>, const T: usize, const C: usize>(
        &mut self,
        s: S,
        panel: &P,
        index: usize,
        first: usize,
    ) {
        let width = 8 * panel.groups();
        let (full, k) = (self.k / width, self.k);
        let mut x: [&[[f32; 8]]; T] = [&[]; T];
        let mut tail = [[[0.0; 8]; 4]; T];
        for t in 0..T {
            let (whole, rest) = self.x[(first + t) * k..][..k].split_at(full * width);
            x[t] = whole.as_chunks().0;
            tail[t].as_flattened_mut()[..rest.len()].copy_from_slice(rest);
        }
        let mut totals = [s.splat(0.0); T];
        let mut chunk = 0;
        while C > 1 && full - chunk >= C {
            chunks::<S, P, T, C>(s, panel, chunk, chunk, &x, &mut totals);
            chunk += C;
        }
        while chunk < k.div_ceil(width) {
            let mut at = chunk;
            if chunk == full {
                at = 0;
                for (x, tail) in x.iter_mut().zip(&tail) {
                    *x = &tail[..panel.groups()];
                }
            }
            chunks::<S, P, T, 1>(s, panel, chunk, at, &x, &mut totals);
            chunk += 1;
        }
        let row = index * PANEL - self.rows.start;
        let width = self.rows.len();
        for (t, &total) in totals.iter().enumerate() {
            let out = &mut self.out[(first + t) * width..][row..width.min(row + PANEL)];
            store_part(s, total, out);
        }
    }
}

/// Adds chunks `chunk..chunk + C` of a panel to the totals; `at` is where the first of them lies in `x`, in chunks.
#[inline(always)]
fn chunks<S: Lanes, P: Panel<S>, const T: usize, const C: usize>(
    s: S,
    panel: &P,
    chunk: usize,
    at: usize,
    x: &[&[[f32; 8]]; T],
    totals: &mut [S::F; T],
) {
    let mut shared = [panel.chunk(s, chunk); C];
    for c in 1..C {
        shared[c] = panel.chunk(s, chunk + c);
    }
    let mut sums = [[s.splat(0.0); T]; C];
    let groups = panel.groups();
    for g in 0..groups {
        for c in 0..C {
            let group = panel.group(s, (chunk + c) * groups + g);
            if T == 1 {
                panel.prefetch(s, (chunk + c) * groups + g);
            }
            let mut values = [&[0.0; 8]; T];
            for t in 0..T {
                values[t] = &x[t][(at + c) * groups + g];
            }
            macro_rules! columns {
                ($($j:expr),*) => {$(
                    let w = panel.column(s, &shared[c], &group, $j);
                    for t in 0..T {
                        sums[c][t] = s.fma(w, s.splat(values[t][$j]), sums[c][t]);
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
    }
    for c in 0..C {
        for t in 0..T {
            totals[t] = panel.close(s, &shared[c], sums[c][t], totals[t]);
        }
    }
}
