//! Products in integers: the activations are quantized to int8 too, 32 at a time.
//!
//! # Numbers
//!
//! A block of 32 activations becomes `x ≈ s · q` with `s = max |x| / 127` and `q` rounded to nearest even. The product of a
//! block with 32 weights is then exact in 32-bit integers; with `w = scale · (u − offset)`
//!
//! `y = Σ over blocks, in order, of scale · (s · (Σ u q − offset · Σ q))`
//!
//! each block added by one fused multiply-add in f32. Against the exact product the error is at most
//! `Σ over blocks of max |x| / 254 · Σ |w|`, and a few roundings to f32. The bits depend neither on the rows asked for, nor
//! on how many tokens are computed together, nor on the instruction set.
//!
//! Activations may also be 16 bits deep: `s = max |x| / 32384`, and `q = 254 · high + low`, two records of bytes. Each byte is
//! multiplied by itself, so that the sums stay exact; the error is 255 times smaller. While memory is the limit (few tokens)
//! that costs nothing.
//!
//! The entries of palettes are made 16-bit integers, for each table relative to its largest entry (at most 2^-16 of which a
//! weight is off), and multiplied as two bytes.
//!
//! A block with a NaN or an infinity gets a scale of NaN, so that the token's outputs are NaN. A block whose values are all
//! below 1e-30 counts as zero.
//!
//! # Roofline
//!
//! One token: the packed weights once, 0.56 (int4) or 1.06 (int8) bytes a weight; one dot-product instruction per 64 weights
//! and about one more to unpack int4, so memory is the limit on any machine with VNNI or the NEON dot product.
//! Many tokens: per panel and block 8 dot products a token, with 3 more instructions to scale and add; the weights are
//! unpacked once for [`Lanes::TILE`] tokens.

use super::PANEL;
use crate::columns::Columns;
use crate::isa::{Isa, Kernel};
use crate::lanes::{Lanes, load_part, store_part};
use std::ops::Range;

/// Columns that share a scale of the activations.
pub const BLOCK: usize = 32;

/// A block in words of four bytes, little endian: 32 signed bytes, the scale as f32, the sum of the bytes as i32, and
/// multiples of that sum, where sums of products may start so as to take a bias away. As long as a cache line.
type Record = [[u8; 4]; 16];

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
    /// Records for a block of a token: 1, or 2 where they are 16 bits deep, the high bytes first.
    depth: usize,
    records: &'a [Record],
}

/// How many steps of the low bytes one of the high bytes is.
const HIGH: f32 = 254.0;
/// The largest integer that two bytes make without a tie when it is rounded to steps of the high one.
const DEEP: f32 = 127.0 * HIGH + 126.0;

impl<'a> Activations<'a> {
    /// How many bytes `n` tokens of `k` values take.
    pub const fn bytes(n: usize, k: usize) -> usize {
        n * k.div_ceil(BLOCK) * size_of::<Record>()
    }

    /// The same for activations that are 16 bits deep.
    pub const fn deep_bytes(n: usize, k: usize) -> usize {
        2 * Self::bytes(n, k)
    }

    /// Quantizes `x`, `[n, k]`, into `into`, [`Self::bytes`] long.
    pub fn quantize(isa: Isa, x: &[f32], n: usize, k: usize, into: &'a mut [u8]) -> Self {
        Self::quantize_to(isa, x, n, k, 1, into)
    }

    /// Quantizes `x`, `[n, k]`, to 16 bits into `into`, [`Self::deep_bytes`] long.
    pub fn quantize_deep(isa: Isa, x: &[f32], n: usize, k: usize, into: &'a mut [u8]) -> Self {
        Self::quantize_to(isa, x, n, k, 2, into)
    }

    fn quantize_to(isa: Isa, x: &[f32], n: usize, k: usize, depth: usize, into: &'a mut [u8]) -> Self {
        assert_eq!(x.len(), n * k, "quantize: {} values for {n} tokens of {k}", x.len());
        assert_eq!(into.len(), depth * Self::bytes(n, k), "quantize: the destination has the wrong length");
        let records = into.as_chunks_mut().0.as_chunks_mut().0;
        isa.run(Quantize { x, n, k, depth, records: &mut *records });
        Self { n, k, depth, records }
    }

    /// A view of bytes that [`Self::quantize`] wrote for the same `n` and `k`.
    pub fn new(n: usize, k: usize, bytes: &'a [u8]) -> Self {
        assert_eq!(bytes.len(), Self::bytes(n, k), "activations: {} bytes for {n} tokens of {k}", bytes.len());
        Self { n, k, depth: 1, records: bytes.as_chunks().0.as_chunks().0 }
    }

    /// A view of bytes that [`Self::quantize_deep`] wrote for the same `n` and `k`.
    pub fn new_deep(n: usize, k: usize, bytes: &'a [u8]) -> Self {
        assert_eq!(bytes.len(), Self::deep_bytes(n, k), "activations: {} bytes for {n} tokens of {k}", bytes.len());
        Self { n, k, depth: 2, records: bytes.as_chunks().0.as_chunks().0 }
    }

    /// The tokens `range` of these, which starts at a multiple of [`TOGETHER`] and ends at one or at the last token.
    pub fn tokens(&self, range: Range<usize>) -> Self {
        let Range { start, end } = range;
        assert!(start <= end && end <= self.n, "activations: tokens {range:?} of {}", self.n);
        let whole = |t: usize| t.is_multiple_of(TOGETHER) || t == self.n;
        assert!(whole(start) && whole(end), "activations: tokens {range:?} are cut through {TOGETHER} together");
        let each = self.k.div_ceil(BLOCK) * self.depth;
        Self { n: range.len(), records: &self.records[start * each..end * each], ..*self }
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
                let records = &self.records[(first * blocks + b * beside + t - first) * self.depth..][..self.depth];
                let scale = f32::from_le_bytes(records[0][SCALE]);
                for (i, out) in out.iter_mut().enumerate() {
                    let byte = |record: &Record| f32::from(record.as_flattened()[i] as i8);
                    let high = if self.depth == 2 { HIGH } else { 1.0 };
                    *out = (byte(&records[0]) * high + records.get(1).map_or(0.0, byte)) * scale;
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
    depth: usize,
    records: &'b mut [Record],
}

impl Kernel for Quantize<'_, '_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Lanes>(self, s: S) {
        let blocks = self.k.div_ceil(BLOCK).max(1);
        for (t, x) in self.x.chunks_exact(self.k.max(1)).enumerate() {
            let (first, beside) = together(self.n, t);
            for (b, x) in x.chunks(BLOCK).enumerate() {
                let at = (first * blocks + b * beside + t - first) * self.depth;
                match &mut self.records[at..at + self.depth] {
                    [record] => quantize(s, x, record),
                    [high, low] => quantize_deep(s, x, high, low),
                    _ => unreachable!("one record or two"),
                }
            }
        }
    }
}

/// The largest magnitude of a block, and its values times `top` over that, rounded; nothing if any is NaN or infinite.
#[inline(always)]
fn scaled<S: Lanes>(s: S, x: &[f32], top: f32) -> Option<(f32, [S::F; 2])> {
    let a = load_part(s, x, 0.0);
    let b = load_part(s, x.get(16..).unwrap_or(&[]), 0.0);
    let largest = s.largest(s.max(s.abs(a), s.abs(b))).max(s.largest(s.abs(a)));
    let (scale, factor) = if largest < 1e-30 { (0.0, 0.0) } else { (largest / top, top / largest) };
    let factor = s.splat(factor);
    let both = [s.round(s.mul(a, factor)), s.round(s.mul(b, factor))];
    (!s.sum(s.add(both[0], both[1])).is_nan()).then_some((scale, both))
}

#[inline(always)]
fn quantize<S: Lanes>(s: S, x: &[f32], record: &mut Record) {
    match scaled(s, x, 127.0) {
        Some((scale, both)) => {
            let sum = write(s, both, record);
            record[SCALE] = scale.to_le_bytes();
            record[SUM] = sum.to_le_bytes();
        }
        None => not_a_number(record),
    }
}

#[inline(always)]
fn quantize_deep<S: Lanes>(s: S, x: &[f32], high: &mut Record, low: &mut Record) {
    let Some((scale, both)) = scaled(s, x, DEEP) else {
        not_a_number(high);
        return *low = [[0; 4]; 16];
    };
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
fn not_a_number(record: &mut Record) {
    *record = [[0; 4]; 16];
    record[SCALE] = f32::NAN.to_le_bytes();
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
    fn chunk(&self, s: S, block: usize) -> Self::Chunk;
    fn lines(&self, block: usize) -> Self::Lines;
    /// Asks for the memory that lies [`super::AHEAD`] of these lines.
    fn prefetch(&self, s: S, lines: Self::Lines);
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
        let n = self.x.n;
        for index in self.rows.start / PANEL..self.rows.end.div_ceil(PANEL) {
            let panel = self.weights.integers(s, index);
            let mut t = 0;
            if self.x.depth == 2 {
                while S::TILE >= 8 && n - t >= 4 {
                    self.tokens::<S, _, 4, 2>(s, &panel, index, t);
                    t += 4;
                }
                while n > t {
                    self.tokens::<S, _, 1, 2>(s, &panel, index, t);
                    t += 1;
                }
            }
            while S::TILE >= 8 && n - t >= 8 {
                self.tokens::<S, _, 8, 1>(s, &panel, index, t);
                t += 8;
            }
            while S::TILE >= 4 && n - t >= 4 {
                self.tokens::<S, _, 4, 1>(s, &panel, index, t);
                t += 4;
            }
            while n > t {
                self.tokens::<S, _, 1, 1>(s, &panel, index, t);
                t += 1;
            }
        }
    }
}

impl<W: IntegerWeights> IntegerProduct<'_, '_, W> {
    /// `T` tokens from `first` on, of `D` records a block, against one panel.
    #[inline(always)]
    fn tokens<S: Lanes, P: IntegerPanel<S>, const T: usize, const D: usize>(
        &mut self,
        s: S,
        panel: &P,
        index: usize,
        first: usize,
    ) {
        let all = self.x.k.div_ceil(BLOCK);
        let (start, beside) = together(self.x.n, first);
        let records = &self.x.records.as_chunks::<D>().0[start * all..][..all * beside];
        let mut totals = [s.splat(0.0); T];
        for (block, records) in records.chunks_exact(beside).enumerate() {
            let tile = records[first - start..].first_chunk();
            add::<S, P, T, D>(s, panel, block, tile.expect("the tokens of a tile lie together"), &mut totals);
        }
        let row = index * PANEL - self.rows.start;
        let width = self.rows.len();
        for t in 0..T {
            store_part(s, totals[t], &mut self.out.row(first + t)[row..width.min(row + PANEL)]);
        }
    }
}

/// Adds a block of a panel to the totals.
#[inline(always)]
fn add<S: Lanes, P: IntegerPanel<S>, const T: usize, const D: usize>(
    s: S,
    panel: &P,
    block: usize,
    x: &[[Record; D]; T],
    totals: &mut [S::F; T],
) {
    let chunk = panel.chunk(s, block);
    let lines = panel.lines(block);
    if T == 1 {
        panel.prefetch(s, lines);
    }
    let start = panel.start() & 15;
    let mut sums = [[[s.isplat(0); D]; T]; 2];
    for t in 0..T {
        for d in 0..D {
            sums[0][t][d] = s.isplat(i32::from_le_bytes(x[t][d][start]));
        }
    }
    sums[1] = sums[0];
    for g in 0..4 {
        let bytes = panel.bytes(s, &chunk, lines, g);
        for plane in 0..P::PLANES {
            let [low, high] = bytes[plane];
            for t in 0..T {
                for d in 0..D {
                    let first = s.isplat(i32::from_le_bytes(x[t][d][2 * g]));
                    let second = s.isplat(i32::from_le_bytes(x[t][d][2 * g + 1]));
                    let sum = &mut sums[plane][t][d];
                    if P::NIBBLES {
                        *sum = s.dot_nibbles(s.dot_nibbles(*sum, low, first), high, second);
                    } else {
                        *sum = s.dot_bytes(s.dot_bytes(*sum, low, first), high, second);
                    }
                }
            }
        }
    }
    for t in 0..T {
        let mut value = whole(s, sums[0][t]);
        if P::PLANES == 2 {
            value = s.fma(value, s.splat(256.0), whole(s, sums[1][t]));
        }
        if let Some(offset) = panel.offset(&chunk) {
            let sum = i32::from_le_bytes(x[t][0][SUM]) as f32;
            value = s.fma(offset, s.splat(-sum), value);
        }
        let value = s.mul(value, s.splat(f32::from_le_bytes(x[t][0][SCALE])));
        totals[t] = s.fma(value, panel.scale(&chunk), totals[t]);
    }
}

/// The sums of products with the bytes of activations, put together.
#[inline(always)]
fn whole<S: Lanes, const D: usize>(s: S, sums: [S::I; D]) -> S::F {
    let high = s.to_f32(sums[0]);
    if D == 2 { s.fma(high, s.splat(HIGH), s.to_f32(sums[D - 1])) } else { high }
}

#[cfg(test)]
mod tests;
