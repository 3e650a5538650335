//! The product of tiles with weights of any kind that are integers.

use super::super::PANEL;
use super::super::integer::{BLOCK, IntegerPanel, IntegerWeights};
use super::panel::{CAPACITY, append, are_words};
use super::{COLUMNS, TOKENS, Tiles, chunk};
use crate::columns::Columns;
use crate::isa::{Amx, Avx512, TileKernel};
use crate::lanes::amx::{Line, Lines, Sums, Unit};
use crate::lanes::{Lanes, load_part, store_part};
use std::arch::x86_64::__m512;
use std::ops::Range;

/// The product as a kernel; lengths are already checked.
pub(in super::super) struct TileProduct<'a, 'b, W> {
    pub(in super::super) weights: W,
    pub(in super::super) rows: Range<usize>,
    pub(in super::super) x: Tiles<'b>,
    pub(in super::super) out: Columns<'a>,
}

/// A chunk of two panels.
struct Pair<'a> {
    /// The first panel.
    index: usize,
    chunk: usize,
    /// Whether weights are two bytes.
    words: bool,
    lines: [&'a [Line]; 2],
    scales: [__m512; 2],
}

/// Sixteen tokens whose sums are there.
struct Done<'a> {
    first: usize,
    scales: &'a [[u8; 4]; TOKENS],
}

impl<W: IntegerWeights> TileProduct<'_, '_, W> {
    pub(in super::super) fn start(self) {
        self.x.amx.run(self);
    }

    /// All tokens against two panels. While tiles multiply sixteen tokens, the sums of those before are made floats.
    #[inline(always)]
    fn tokens(&mut self, amx: Amx, unit: &Unit, pair: &Pair<'_>, sums: &mut Sums) {
        let steps = chunk(self.x.k) / COLUMNS;
        let tokens = self.x;
        let mut before: Option<Done<'_>> = None;
        for (group, (x, scales)) in tokens.groups().enumerate() {
            let x = &x[pair.chunk * steps..];
            let x = &x[..steps.min(x.len())];
            if pair.words {
                unit.words(x, pair.lines);
            } else {
                unit.bytes(x, pair.lines);
            }
            let done = Done { first: group * TOKENS, scales: &scales[pair.chunk] };
            if let Some(before) = before.replace(done) {
                self.write(amx.avx512(), sums, pair, before);
            }
            unit.store(sums);
        }
        if let Some(last) = before {
            self.write(amx.avx512(), sums, pair, last);
        }
    }

    /// The products of sixteen tokens, or what they add.
    #[inline(always)]
    fn write(&mut self, s: Avx512, sums: &Sums, pair: &Pair<'_>, Done { first, scales }: Done<'_>) {
        let row = pair.index * PANEL - self.rows.start;
        let count = TOKENS.min(self.x.n - first);
        let out = &mut self.out.part(row..self.rows.len().min(row + 2 * PANEL));
        for t in 0..count {
            let out = out.row(first + t);
            if let (0, Some(out)) = (pair.chunk, out.first_chunk_mut::<{ 2 * PANEL }>()) {
                for (panel, out) in out.as_chunks_mut::<PANEL>().0.iter_mut().enumerate() {
                    s.store(value(s, sums.of(panel, t), pair.scales[panel], scales[t], s.splat(0.0)), out);
                }
                continue;
            }
            for (panel, out) in out.chunks_mut(PANEL).enumerate() {
                let before = if pair.chunk > 0 { load_part(s, out, 0.0) } else { s.splat(0.0) };
                store_part(s, value(s, sums.of(panel, t), pair.scales[panel], scales[t], before), out);
            }
        }
    }
}

/// Products of a token with sixteen rows, added to those before.
#[inline(always)]
fn value(s: Avx512, [high, low]: [&Line; 2], rows: __m512, token: [u8; 4], before: __m512) -> __m512 {
    let [high, low] = [s.to_f32(s.iload(high)), s.to_f32(s.iload(low))];
    let sum = s.mul(s.fma(high, s.splat(256.0), low), rows);
    s.fma(sum, s.splat(f32::from_le_bytes(token)), before)
}

impl<W: IntegerWeights> TileKernel for TileProduct<'_, '_, W> {
    #[inline(always)]
    fn run(mut self, amx: Amx) {
        let s = amx.avx512();
        let unit = amx.unit();
        let mut lines = Lines::<CAPACITY>::new();
        let mut sums = Sums::zero();
        let (blocks, columns) = (self.x.k.div_ceil(BLOCK), chunk(self.x.k));
        let panels = self.rows.start / PANEL..self.rows.end.div_ceil(PANEL);
        // The next two panels come into the caches while these are multiplied.
        let ahead = 2 * blocks * <W::Integers<Avx512> as IntegerPanel<Avx512>>::BYTES;
        if blocks == 0 {
            (0..self.x.n).for_each(|t| self.out.row(t).fill(0.0));
        }
        for index in panels.clone().step_by(2) {
            for chunk in 0..self.x.k.div_ceil(columns) {
                let blocks = chunk * (columns / BLOCK)..blocks.min((chunk + 1) * (columns / BLOCK));
                lines.clear();
                let mut scales = [s.splat(0.0); 2];
                let mut words = true;
                for panel in 0..2 {
                    // A last panel without another is multiplied twice.
                    let panel_at = self.weights.integers(s, (index + panel).min(panels.end - 1));
                    words = are_words(s, &panel_at, blocks.start);
                    scales[panel] = append(amx, &panel_at, blocks.clone(), words, ahead, &mut lines);
                }
                let (first, second) = lines.written().split_at(lines.written().len() / 2);
                let pair = Pair { index, chunk, words, lines: [first, second], scales };
                self.tokens(amx, &unit, &pair, &mut sums);
            }
        }
    }
}
