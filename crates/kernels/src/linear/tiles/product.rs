//! The product of tiles with weights of any kind that are integers.

use super::super::PANEL;
use super::super::integer::{BLOCK, IntegerPanel, IntegerWeights};
use super::panel::{CAPACITY, append, are_words};
use super::{CHUNK, COLUMNS, TOKENS, Tiles};
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

impl<W: IntegerWeights> TileProduct<'_, '_, W> {
    pub(in super::super) fn start(self) {
        self.x.amx.run(self);
    }

    /// All tokens against two panels.
    #[inline(always)]
    fn tokens(&mut self, amx: Amx, unit: &Unit, pair: &Pair<'_>) {
        let mut sums = [const { [const { Sums::zero() }; 2] }; 2];
        let steps = CHUNK / COLUMNS;
        for (group, (x, scales)) in self.x.groups().enumerate() {
            let x = &x[pair.chunk * steps..];
            let x = &x[..steps.min(x.len())];
            if pair.words {
                unit.words(x, pair.lines, &mut sums);
            } else {
                unit.bytes(x, pair.lines, &mut sums);
            }
            let first = group * TOKENS;
            for panel in 0..2 {
                let row = (pair.index + panel) * PANEL - self.rows.start;
                let columns = row.min(self.rows.len())..self.rows.len().min(row + PANEL);
                if columns.is_empty() {
                    continue;
                }
                for t in 0..TOKENS.min(self.x.n - first) {
                    let scale = f32::from_le_bytes(scales[pair.chunk][t]);
                    let out = &mut self.out.row(first + t)[columns.clone()];
                    write(amx.avx512(), &sums[panel], t, pair.scales[panel], scale, pair.chunk > 0, out);
                }
            }
        }
    }
}

/// The products of token `t`, or what they add.
#[inline(always)]
fn write(s: Avx512, [high, low]: &[Sums; 2], t: usize, rows: __m512, token: f32, add: bool, out: &mut [f32]) {
    let [high, low] = [s.to_f32(s.iload(&high.0[t])), s.to_f32(s.iload(&low.0[t]))];
    let sum = s.mul(s.fma(high, s.splat(256.0), low), rows);
    let before = if add { load_part(s, out, 0.0) } else { s.splat(0.0) };
    store_part(s, s.fma(sum, s.splat(token), before), out);
}

impl<W: IntegerWeights> TileKernel for TileProduct<'_, '_, W> {
    #[inline(always)]
    fn run(mut self, amx: Amx) {
        let s = amx.avx512();
        let unit = amx.unit();
        let mut lines = Lines::<CAPACITY>::new();
        let blocks = self.x.k.div_ceil(BLOCK);
        let panels = self.rows.start / PANEL..self.rows.end.div_ceil(PANEL);
        // The next two panels come into the caches while these are multiplied.
        let ahead = 2 * blocks * <W::Integers<Avx512> as IntegerPanel<Avx512>>::BYTES;
        if blocks == 0 {
            (0..self.x.n).for_each(|t| self.out.row(t).fill(0.0));
        }
        for index in panels.clone().step_by(2) {
            for chunk in 0..self.x.k.div_ceil(CHUNK) {
                let blocks = chunk * (CHUNK / BLOCK)..blocks.min((chunk + 1) * (CHUNK / BLOCK));
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
                self.tokens(amx, &unit, &Pair { index, chunk, words, lines: [first, second], scales });
            }
        }
    }
}
