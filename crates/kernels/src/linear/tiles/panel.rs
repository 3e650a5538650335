//! Sixteen rows of weights as bytes for tiles.

use super::super::integer::{BLOCK, IntegerPanel};
use super::{COLUMNS, LARGEST, LONGEST};
use crate::isa::{Amx, Avx512};
use crate::lanes::Lanes;
use crate::lanes::amx::{HEIGHT, Lines};
use std::arch::x86_64::{__m512, __m512i};
use std::ops::Range;

/// Lines of two panels, of weights of two bytes.
pub(super) const CAPACITY: usize = 2 * LONGEST / COLUMNS * HEIGHT * 2;

/// Appends `blocks` of a panel, four columns a line; where `words`, the line of high bytes and then that of low ones.
/// Gives what a step of the sums is, row by row.
#[inline(always)]
pub(super) fn append<P: IntegerPanel<Avx512>>(
    amx: Amx,
    panel: &P,
    blocks: Range<usize>,
    words: bool,
    lines: &mut Lines<CAPACITY>,
) -> __m512 {
    let s = amx.avx512();
    let scale =
        if words { words_of(amx, panel, blocks.clone(), lines) } else { bytes_of(amx, panel, blocks.clone(), lines) };
    if !blocks.len().is_multiple_of(COLUMNS / BLOCK) {
        for _ in 0..if words { 2 } else { 1 } {
            lines.push(amx, [amx.zero(); BLOCK / 4]);
        }
    }
    s.mul(scale, s.splat(if words { 256.0 } else { 1.0 }))
}

/// Whether weights take two bytes: all but those of a scale a row that are bytes as they are.
#[inline(always)]
pub(super) fn are_words<P: IntegerPanel<Avx512>>(s: Avx512, panel: &P, block: usize) -> bool {
    let moved = panel.offset(&panel.chunk(s, block)).is_some() || panel.bias() != half::<P>();
    P::PLANES == 2 || !panel.uniform() || moved
}

/// Weights of a scale a row, which are bytes.
#[inline(always)]
fn bytes_of<P: IntegerPanel<Avx512>>(amx: Amx, panel: &P, blocks: Range<usize>, into: &mut Lines<CAPACITY>) -> __m512 {
    let s = amx.avx512();
    let bias = panel.bias() as u8;
    let chunk = panel.chunk(s, blocks.start);
    for block in blocks {
        let lines = panel.lines(block);
        let mut made = [amx.zero(); 8];
        for g in 0..4 {
            let [bytes, _] = panel.bytes(s, &chunk, lines, g);
            for half in 0..2 {
                made[2 * g + half] = amx.less(bytes[half], bias);
            }
        }
        into.push(amx, made);
    }
    panel.scale(&chunk)
}

/// Weights of a scale a block, or of an offset, or of a table.
#[inline(always)]
fn words_of<P: IntegerPanel<Avx512>>(amx: Amx, panel: &P, blocks: Range<usize>, into: &mut Lines<CAPACITY>) -> __m512 {
    let s = amx.avx512();
    let (scale, factor) = row_scale(s, panel, blocks.clone());
    for block in blocks {
        let chunk = panel.chunk(s, block);
        let times = s.mul(panel.scale(&chunk), factor);
        let scales = amx.twice(s.mul(times, s.splat(half::<P>())));
        // Bytes are made of words that are 128 more.
        let mut shifts = amx.word(128);
        if P::PLANES == 1 {
            shifts = amx.add_words(shifts, amx.twice(s.mul(times, shift(s, panel, &chunk))));
        }
        let lines = panel.lines(block);
        let mut made = [amx.zero(); 16];
        for g in 0..4 {
            let [high, low] = panel.bytes(s, &chunk, lines, g);
            for half in 0..2 {
                let [even, odd] = moved::<P>(amx, high[half], low[half]);
                let (even, odd) = (amx.scaled(even, scales), amx.scaled(odd, scales));
                let bytes = amx.bytes([amx.add_words(even, shifts), amx.add_words(odd, shifts)]);
                [made[4 * g + 2 * half], made[4 * g + 2 * half + 1]] = bytes;
            }
        }
        into.push(amx, made);
    }
    scale
}

/// Half of how many integers a weight may be.
#[inline(always)]
fn half<P: IntegerPanel<Avx512>>() -> f32 {
    if P::PLANES == 2 {
        32_768.0
    } else if P::NIBBLES {
        8.0
    } else {
        128.0
    }
}

/// Unsigned integers less [`half()`], times what makes a [`half()`] of them 2^15.
#[inline(always)]
fn moved<P: IntegerPanel<Avx512>>(amx: Amx, high: __m512i, low: __m512i) -> [__m512i; 2] {
    if P::PLANES == 2 {
        // Both bytes are moved up by 128.
        let [even, odd] = amx.words(amx.flip(high, 0x80), low);
        [amx.add_words(even, amx.word(-128)), amx.add_words(odd, amx.word(-128))]
    } else {
        let high = if P::NIBBLES { amx.times_16(high) } else { high };
        amx.words(amx.flip(high, 0x80), amx.zero())
    }
}

/// What is to be added to weights less [`half()`], row by row.
#[inline(always)]
fn shift<P: IntegerPanel<Avx512>>(s: Avx512, panel: &P, chunk: &P::Chunk) -> __m512 {
    let offset = panel.offset(chunk).unwrap_or(s.splat(panel.bias()));
    s.sub(s.splat(half::<P>()), offset)
}

/// What 1 of a word stands for in each row, and 1 over that: from the largest weight that scales and offsets allow.
#[inline(always)]
fn row_scale<P: IntegerPanel<Avx512>>(s: Avx512, panel: &P, blocks: Range<usize>) -> (__m512, __m512) {
    let (mut largest, mut sum) = (s.splat(0.0), s.splat(0.0));
    for block in blocks {
        let chunk = panel.chunk(s, block);
        let size = if P::PLANES == 2 {
            s.splat(half::<P>())
        } else {
            s.add(s.splat(half::<P>()), s.abs(shift(s, panel, &chunk)))
        };
        let size = s.mul(s.abs(panel.scale(&chunk)), size);
        (largest, sum) = (s.max(largest, size), s.fma(size, s.splat(0.0), sum));
    }
    // A NaN or an infinity among the scales makes the row's NaN.
    let scale = s.add(s.mul(largest, s.splat(1.0 / LARGEST)), sum);
    let factor = s.select_gt(largest, s.splat(1e-30), s.div(s.splat(LARGEST), largest), s.splat(0.0));
    (scale, factor)
}
