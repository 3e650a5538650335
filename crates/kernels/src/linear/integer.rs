//! Products in integers: the activations are quantized to 16 bits, 32 at a time.
//!
//! # Numbers
//!
//! A block of 32 activations becomes `x ≈ s · q` with `s = max |x| / 32384` and `q` rounded to nearest even, in two bytes:
//! `q = 254 · high + low`. Each byte is multiplied by itself, so that the products of a block with 32 weights are exact in 32-bit
//! integers; with `w = scale · (u − offset)`
//!
//! `y = Σ over blocks, in order, of scale · (s · (254 · Σ u high + Σ u low − offset · Σ q))`
//!
//! each block added by one fused multiply-add in f32. Against the exact product the error is at most
//! `Σ over blocks of max |x| / 64768 · Σ |w|`, and a few roundings to f32. The bits depend neither on the rows asked for, nor
//! on how many tokens are computed together, nor on the instruction set.
//!
//! The entries of palettes are made 16-bit integers, for each table relative to its largest entry (at most 2^-16 of which a
//! weight is off), and multiplied as two bytes, `w = scale · (256 · w₁ + w₀)`; here
//!
//! `y = Σ over blocks, in order, of 256 · scale · (s · (254 · Σ w₁ high + Σ w₁ low + 254/256 · Σ w₀ high))`
//!
//! What is left out, `Σ w₀ low`, is for each column at most `max |x| / 64768` times the largest entry of the table: what rounding the
//! activations may change where all weights are as large as that entry.
//!
//! A block with a NaN or an infinity gets a scale of NaN, so that the token's outputs are NaN. A block whose values are all
//! below 1e-30 counts as zero.
//!
//! # Roofline
//!
//! One token: the packed weights once, 0.56 (int4) or 1.06 (int8) bytes a weight; two dot products per 64 weights and about one
//! more instruction to unpack int4, so memory is the limit on any machine with VNNI or the NEON dot product.
//!
//! Many tokens: dot products are the limit. A tile of four tokens and two panels takes 128 of them a block, and about 40 other
//! vector instructions to put bytes together, scale and add. It loads 64 words of activations, each for both panels, and 16
//! lines of weights: fewer than the dot products, where one panel alone would load as many as it multiplies.

mod sums;

use super::{AHEAD, PANEL};
use crate::columns::Columns;
use crate::isa::{Isa, Kernel};
use crate::lanes::{Lanes, load_part, store_part};
use std::ops::Range;

/// Columns that share a scale of the activations.
pub const BLOCK: usize = 32;

/// Half of a block in words of four bytes, little endian: 32 signed bytes, the scale as f32, a sum as i32, and multiples of the
/// sum of the bytes, where sums of products may start so as to take a bias away. As long as a cache line.
type Record = [[u8; 4]; 16];

/// A block: the high bytes, with the scale and the sum of the whole, and the low ones.
type Block = [Record; 2];

/// Where in a record the scale is.
const SCALE: usize = 8;
/// Where the sum is.
const SUM: usize = 9;
/// Where 0 is.
pub(super) const ZERO: usize = 10;
/// Where -8 times the sum is.
pub(super) const LESS_8: usize = 11;
/// Where -128 times the sum is.
pub(super) const LESS_128: usize = 12;
/// Where 128 times the sum is.
pub(super) const MORE_128: usize = 13;

/// Tokens that lie together: record `block · TOGETHER + token`. The last ones lie together in a smaller number.
pub const TOGETHER: usize = 8;

/// Quantized activations of `n` tokens: a view of somebody's bytes.
#[derive(Clone, Copy, Debug)]
pub struct Activations<'a> {
    n: usize,
    k: usize,
    blocks: &'a [Block],
}

/// How many steps of the low bytes one of the high bytes is.
const HIGH: f32 = 254.0;
/// The largest integer that two bytes make without a tie when it is rounded to steps of the high one.
const LARGEST: f32 = 127.0 * HIGH + 126.0;

impl<'a> Activations<'a> {
    /// How many bytes `n` tokens of `k` values take.
    pub const fn bytes(n: usize, k: usize) -> usize {
        n * k.div_ceil(BLOCK) * size_of::<Block>()
    }

    /// Quantizes `x`, `[n, k]`, into `into`, [`Self::bytes`] long.
    pub fn quantize(isa: Isa, x: &[f32], n: usize, k: usize, into: &'a mut [u8]) -> Self {
        assert_eq!(x.len(), n * k, "quantize: {} values for {n} tokens of {k}", x.len());
        assert_eq!(into.len(), Self::bytes(n, k), "quantize: the destination has the wrong length");
        let blocks = into.as_chunks_mut().0.as_chunks_mut().0.as_chunks_mut().0;
        isa.run(Quantize { x, n, k, blocks: &mut *blocks });
        Self { n, k, blocks }
    }

    /// A view of bytes that [`Self::quantize`] wrote for the same `n` and `k`.
    pub fn new(n: usize, k: usize, bytes: &'a [u8]) -> Self {
        assert_eq!(bytes.len(), Self::bytes(n, k), "activations: {} bytes for {n} tokens of {k}", bytes.len());
        Self { n, k, blocks: bytes.as_chunks().0.as_chunks().0.as_chunks().0 }
    }

    /// The tokens `range` of these, which starts at a multiple of [`TOGETHER`] and ends at one or at the last token.
    pub fn tokens(&self, range: Range<usize>) -> Self {
        let Range { start, end } = range;
        assert!(start <= end && end <= self.n, "activations: tokens {range:?} of {}", self.n);
        let whole = |t: usize| t.is_multiple_of(TOGETHER) || t == self.n;
        assert!(whole(start) && whole(end), "activations: tokens {range:?} are cut through {TOGETHER} together");
        let each = self.k.div_ceil(BLOCK);
        Self { n: range.len(), blocks: &self.blocks[start * each..end * each], ..*self }
    }

    /// Tokens.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Values per token.
    pub fn k(&self) -> usize {
        self.k
    }

    /// What the quantized activations stand for, `[n, k]`.
    pub fn dequantize(&self, out: &mut [f32]) {
        assert_eq!(out.len(), self.n * self.k, "dequantize: out has {} values", out.len());
        let blocks = self.k.div_ceil(BLOCK).max(1);
        for (t, out) in out.chunks_exact_mut(self.k.max(1)).enumerate() {
            let (first, beside) = together(self.n, t);
            for (b, out) in out.chunks_mut(BLOCK).enumerate() {
                let [high, low] = &self.blocks[first * blocks + b * beside + t - first];
                let scale = f32::from_le_bytes(high[SCALE]);
                for (i, out) in out.iter_mut().enumerate() {
                    let byte = |record: &Record| f32::from(record.as_flattened()[i] as i8);
                    *out = (byte(high) * HIGH + byte(low)) * scale;
                }
            }
        }
    }

    pub(crate) fn check(&self, what: &str, k: usize) {
        assert_eq!(self.k, k, "{what}: activations have {} values a token, the matrix {k} columns", self.k);
    }
}

/// The first of the tokens that token `t` of `n` lies together with, and how many they are.
#[inline(always)]
fn together(n: usize, t: usize) -> (usize, usize) {
    let first = t / TOGETHER * TOGETHER;
    (first, TOGETHER.min(n - first))
}

struct Quantize<'a, 'b> {
    x: &'a [f32],
    n: usize,
    k: usize,
    blocks: &'b mut [Block],
}

impl Kernel for Quantize<'_, '_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Lanes>(self, s: S) {
        let blocks = self.k.div_ceil(BLOCK).max(1);
        for (t, x) in self.x.chunks_exact(self.k.max(1)).enumerate() {
            let (first, beside) = together(self.n, t);
            for (b, x) in x.chunks(BLOCK).enumerate() {
                quantize(s, x, &mut self.blocks[first * blocks + b * beside + t - first]);
            }
        }
    }
}

#[inline(always)]
fn quantize<S: Lanes>(s: S, x: &[f32], [high, low]: &mut Block) {
    let a = load_part(s, x, 0.0);
    let b = load_part(s, x.get(16..).unwrap_or(&[]), 0.0);
    let largest = s.largest(s.max(s.abs(a), s.abs(b))).max(s.largest(s.abs(a)));
    let (scale, factor) = if largest < 1e-30 { (0.0, 0.0) } else { (largest / LARGEST, LARGEST / largest) };
    let factor = s.splat(factor);
    let both = [s.round(s.mul(a, factor)), s.round(s.mul(b, factor))];
    if s.sum(s.add(both[0], both[1])).is_nan() {
        return not_a_number(high, low);
    }
    // A low byte is at most 127, wherever the rounding of the quotient falls.
    let mut highs = both;
    let mut lows = both;
    for i in 0..2 {
        highs[i] = s.round(s.mul(both[i], s.splat(1.0 / HIGH)));
        lows[i] = s.fma(highs[i], s.splat(-HIGH), both[i]);
    }
    let sum = write(s, highs, high) * HIGH as i32 + write(s, lows, low);
    high[SCALE] = scale.to_le_bytes();
    high[SUM] = sum.to_le_bytes();
    (low[SCALE], low[SUM]) = ([0; 4], [0; 4]);
}

/// A block with a NaN or an infinity.
fn not_a_number(high: &mut Record, low: &mut Record) {
    (*high, *low) = ([[0; 4]; 16], [[0; 4]; 16]);
    high[SCALE] = f32::NAN.to_le_bytes();
}

/// Writes the bytes of a record and the multiples of their sum; gives the sum.
#[inline(always)]
fn write<S: Lanes>(s: S, [a, b]: [S::F; 2], record: &mut Record) -> i32 {
    let sum = s.sum(s.add(a, b)) as i32;
    let [low, high, ..] = record.as_flattened_mut().as_chunks_mut::<16>().0 else {
        unreachable!("a record is four times 16 bytes")
    };
    s.store_bytes(s.to_i32(a), low);
    s.store_bytes(s.to_i32(b), high);
    record[ZERO] = [0; 4];
    record[LESS_8] = (sum * -8).to_le_bytes();
    record[LESS_128] = (sum * -128).to_le_bytes();
    record[MORE_128] = (sum * 128).to_le_bytes();
    record[14..].fill([0; 4]);
    sum
}

/// A kind of packed weights that are integers.
pub(crate) trait IntegerWeights: Copy {
    type Integers<S: Lanes>: IntegerPanel<S>;
    fn integers<S: Lanes>(self, s: S, index: usize) -> Self::Integers<S>;
}

/// Sixteen rows of integer weights, seen 32 columns at a time.
pub(crate) trait IntegerPanel<S: Lanes> {
    /// Whether the weights fit in four bits.
    const NIBBLES: bool;
    /// 2 if a weight is 256 times a byte and another byte, else 1.
    const PLANES: usize;
    /// What 32 columns share.
    type Chunk: Copy;
    /// 32 columns as they lie in memory.
    type Lines: Copy;
    /// Where in a record the sums start.
    fn start(&self) -> usize;
    /// How much all bytes are moved up, where no chunk has an offset.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "for tiles"))]
    fn bias(&self) -> f32;
    /// Whether all chunks are alike.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "for tiles"))]
    fn uniform(&self) -> bool;
    fn chunk(&self, s: S, block: usize) -> Self::Chunk;
    fn lines(&self, block: usize) -> Self::Lines;
    /// Bytes of 32 columns.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "for tiles"))]
    const BYTES: usize;
    /// Asks for the memory that lies so many bytes ahead of these lines.
    fn prefetch(&self, s: S, lines: Self::Lines, ahead: usize);
    /// For each plane, the high one first, columns 0..4 and 4..8 of group `g` in 0..4: four bytes a lane, unsigned.
    fn bytes(&self, s: S, chunk: &Self::Chunk, lines: Self::Lines, g: usize) -> [[S::I; 2]; 2];
    /// The scale of each row.
    fn scale(&self, chunk: &Self::Chunk) -> S::F;
    /// What is to be taken away from the weights of a row, where that differs.
    fn offset(&self, chunk: &Self::Chunk) -> Option<S::F>;
}

/// The product as a kernel; lengths are already checked.
pub(crate) struct IntegerProduct<'a, 'b, W> {
    pub(crate) weights: W,
    pub(crate) rows: Range<usize>,
    pub(crate) x: Activations<'b>,
    pub(crate) out: Columns<'a>,
}

impl<W: IntegerWeights> Kernel for IntegerProduct<'_, '_, W> {
    type Out = ();
    #[inline(always)]
    fn run<S: Lanes>(mut self, s: S) {
        let panels = self.rows.start / PANEL..self.rows.end.div_ceil(PANEL);
        let mut index = panels.start;
        while S::TILE >= 8 && <W::Integers<S>>::PLANES == 1 && self.x.n >= 4 && panels.end - index >= 2 {
            let both = [self.weights.integers(s, index), self.weights.integers(s, index + 1)];
            self.panels(s, &both, index);
            index += 2;
        }
        while index < panels.end {
            self.panels(s, &[self.weights.integers(s, index)], index);
            index += 1;
        }
    }
}

impl<W: IntegerWeights> IntegerProduct<'_, '_, W> {
    /// All tokens against so many panels from `index` on.
    #[inline(always)]
    fn panels<S: Lanes, P: IntegerPanel<S>, const N: usize>(&mut self, s: S, panels: &[P; N], index: usize) {
        let n = self.x.n;
        let mut t = 0;
        while S::TILE >= 8 && n - t >= 4 {
            self.tokens::<S, _, 4, N>(s, panels, index, t);
            t += 4;
        }
        while S::TILE >= 4 && P::PLANES == 1 && n - t >= 2 {
            self.tokens::<S, _, 2, N>(s, panels, index, t);
            t += 2;
        }
        while n > t {
            self.tokens::<S, _, 1, N>(s, panels, index, t);
            t += 1;
        }
    }

    /// `T` tokens from `first` on, against `N` panels.
    #[inline(always)]
    fn tokens<S: Lanes, P: IntegerPanel<S>, const T: usize, const N: usize>(
        &mut self,
        s: S,
        panels: &[P; N],
        index: usize,
        first: usize,
    ) {
        let all = self.x.k.div_ceil(BLOCK);
        let (start, beside) = together(self.x.n, first);
        let blocks = &self.x.blocks[start * all..][..all * beside];
        let mut totals = [[s.splat(0.0); T]; N];
        for (block, tokens) in blocks.chunks_exact(beside).enumerate() {
            let tile = tokens[first - start..].first_chunk();
            add::<S, P, T, N>(s, panels, block, tile.expect("the tokens of a tile lie together"), &mut totals);
        }
        for (w, totals) in totals.into_iter().enumerate() {
            let row = (index + w) * PANEL - self.rows.start;
            let width = self.rows.len();
            for (t, total) in totals.into_iter().enumerate() {
                store_part(s, total, &mut self.out.row(first + t)[row..width.min(row + PANEL)]);
            }
        }
    }
}

/// Adds a block of `N` panels to the totals.
#[inline(always)]
fn add<S: Lanes, P: IntegerPanel<S>, const T: usize, const N: usize>(
    s: S,
    panels: &[P; N],
    block: usize,
    x: &[Block; T],
    totals: &mut [[S::F; T]; N],
) {
    let mut chunks = [panels[0].chunk(s, block); N];
    let mut lines = [panels[0].lines(block); N];
    for w in 0..N {
        chunks[w] = panels[w].chunk(s, block);
        lines[w] = panels[w].lines(block);
        if T == 1 {
            panels[w].prefetch(s, lines[w], AHEAD);
        }
    }
    let sums =
        if S::PAIRS { sums::pairs(s, panels, &chunks, &lines, x) } else { sums::bytes(s, panels, &chunks, &lines, x) };
    for t in 0..T {
        let sum = s.splat(-(i32::from_le_bytes(x[t][0][SUM]) as f32));
        let scale = f32::from_le_bytes(x[t][0][SCALE]);
        let scale = s.splat(if P::PLANES == 2 { 256.0 * scale } else { scale });
        for w in 0..N {
            let [high, low] = sums[w][0][t];
            let mut value = s.to_f32(low);
            if P::PLANES == 2 {
                value = s.fma(s.to_f32(sums[w][1][t][0]), s.splat(HIGH / 256.0), value);
            }
            value = s.fma(s.to_f32(high), s.splat(HIGH), value);
            if let Some(offset) = panels[w].offset(&chunks[w]) {
                value = s.fma(offset, sum, value);
            }
            totals[w][t] = s.fma(s.mul(value, scale), panels[w].scale(&chunks[w]), totals[w][t]);
        }
    }
}

#[cfg(test)]
mod tests;
