//! The product with quantized activations, and its tables.

use super::super::PANEL;
use super::super::integer::{self, IntegerPanel, IntegerWeights};
use super::LinearLut;
use super::lines::group;
use crate::lanes::Lanes;
use std::ops::Range;

/// 64 high bytes, 64 low bytes, sixteen scales. Tables of up to sixteen entries are four, one for each four rows.
pub(super) type IntegerTable = [[u8; 64]; 3];

/// Makes a table 16-bit integers: `256 · high + low`, both bytes moved up by 128, times the scale. It comes to stand in `at` of the
/// bytes, of which each four lanes have sixteen.
pub(super) fn integer_table(values: &[f32], at: Range<usize>, into: &mut IntegerTable) {
    let largest = values.iter().fold(0.0_f32, |m, v| if v.abs() <= m { m } else { v.abs() });
    let scale = largest / 32_512.0;
    for (entry, at) in at.enumerate() {
        let value = values[entry % values.len()];
        // A table with a NaN or an infinity has a scale of its kind.
        let integer = if scale > 0.0 && scale.is_finite() { (value / scale).round_ties_even() as i32 } else { 0 };
        let high = (integer + 128) >> 8;
        into[0][at] = (high + 128) as u8;
        into[1][at] = (integer - 256 * high + 128) as u8;
        into[2][at] = scale.to_le_bytes()[at % 4];
    }
}

/// The weights for integer products, with the bits known at compile time.
#[derive(Clone, Copy)]
pub(super) struct IntegerView<'a, const BITS: usize>(pub(super) LinearLut<'a>);

impl<'a, const BITS: usize> IntegerWeights for IntegerView<'a, BITS> {
    type Integers<S: Lanes> = IntegerPanelView<'a, BITS>;
    #[inline(always)]
    fn integers<S: Lanes>(self, _s: S, index: usize) -> Self::Integers<S> {
        let LinearLut { shape, lines, integers, beside, .. } = self.0;
        let panel = shape.k.div_ceil(32) * BITS;
        let set = if beside == 1 { index * PANEL / shape.group_rows() } else { index };
        IntegerPanelView {
            lines: &lines[index * panel..][..panel],
            tables: &integers[set * shape.col_groups..][..shape.col_groups],
            chunks: shape.group_cols().div_ceil(32),
            start: if S::UNSIGNED { integer::LESS_128 } else { integer::ZERO },
        }
    }
}

pub(super) struct IntegerPanelView<'a, const BITS: usize> {
    lines: &'a [[u8; 64]],
    tables: &'a [IntegerTable],
    /// Chunks that share a table.
    chunks: usize,
    start: usize,
}

impl<'a, S: Lanes, const BITS: usize> IntegerPanel<S> for IntegerPanelView<'a, BITS> {
    const NIBBLES: bool = false;
    const PLANES: usize = 2;
    const BYTES: usize = 64 * BITS;
    /// High bytes, low bytes, scales.
    type Chunk = (S::I, S::I, S::F);
    type Lines = &'a [[u8; 64]];
    #[inline(always)]
    fn start(&self) -> usize {
        self.start
    }
    #[inline(always)]
    fn bias(&self) -> f32 {
        128.0
    }
    #[inline(always)]
    fn uniform(&self) -> bool {
        self.tables.len() == 1
    }
    #[inline(always)]
    fn chunk(&self, s: S, block: usize) -> Self::Chunk {
        let set = if self.tables.len() == 1 { 0 } else { block / self.chunks };
        let [high, low, scale] = &self.tables[set];
        (s.iload(high), s.iload(low), s.load_bytes(scale))
    }
    #[inline(always)]
    fn lines(&self, block: usize) -> Self::Lines {
        &self.lines[block * BITS..][..BITS]
    }
    #[inline(always)]
    fn prefetch(&self, s: S, lines: Self::Lines, ahead: usize) {
        for line in 0..BITS {
            s.prefetch(&lines[0], ahead + 64 * line);
        }
    }
    #[inline(always)]
    fn bytes(&self, s: S, chunk: &Self::Chunk, lines: Self::Lines, g: usize) -> [[S::I; 2]; 2] {
        let (high, low, _) = *chunk;
        if BITS == 6 {
            let [first, second] = six(s, lines, g);
            return [
                [s.lookup_bytes64(high, first), s.lookup_bytes64(high, second)],
                [s.lookup_bytes64(low, first), s.lookup_bytes64(low, second)],
            ];
        }
        let [first, second] = indices::<S, BITS>(s, group(s, lines, BITS, g));
        [
            [s.lookup_bytes(high, first), s.lookup_bytes(high, second)],
            [s.lookup_bytes(low, first), s.lookup_bytes(low, second)],
        ]
    }
    #[inline(always)]
    fn scale(&self, chunk: &Self::Chunk) -> S::F {
        chunk.2
    }
    #[inline(always)]
    fn offset(&self, _chunk: &Self::Chunk) -> Option<S::F> {
        None
    }
}

/// The indices of columns 0..4 and 4..8 of a group, a byte each.
#[inline(always)]
fn indices<S: Lanes, const BITS: usize>(s: S, [low, high]: [S::I; 2]) -> [S::I; 2] {
    if BITS == 4 {
        return [s.low_nibbles(low), s.high_nibbles(low)];
    }
    let parts = if BITS == 3 { 2 } else { BITS };
    let mask = s.isplat(((1 << parts) - 1) * 0x0101_0101);
    let mut both = [s.iand(low, mask), s.iand(s.shr(low, parts as u32), mask)];
    if BITS == 3 {
        let one = s.isplat(0x0101_0101);
        both[0] = s.ior(both[0], s.shl(s.iand(high, one), 2));
        both[1] = s.ior(both[1], s.shl(s.iand(s.shr(high, 1), one), 2));
    }
    both
}

/// The indices of six bits of columns 0..4 and 4..8 of a group, a byte each, with any bits above them.
#[inline(always)]
fn six<S: Lanes>(s: S, lines: &[[u8; 64]], g: usize) -> [S::I; 2] {
    const LOW: i32 = 0x0f0f_0f0f;
    let (low, high) = (s.iload(&lines[g]), s.iload(&lines[4 + g / 2]));
    // The high parts of the first columns are two bits from 0 (4 in odd groups) on, of the second ones from 2 (6) on.
    let [first, second] = if g.is_multiple_of(2) { [s.shl(high, 4), s.shl(high, 2)] } else { [high, s.shr(high, 2)] };
    [s.merge(LOW, low, first), s.merge(LOW, s.shr(low, 4), second)]
}
