//! The product of tiles with weights of any kind that are integers.

use super::super::PANEL;
use super::super::integer::{BLOCK, IntegerPanel, IntegerWeights};
use super::ending::{Ending, Gated, Plain};
use super::panel::{CAPACITY, append, are_words};
use super::{COLUMNS, TOKENS, Then, Tiles, chunk};
use crate::columns::Columns;
use crate::isa::{Amx, Avx512, TileKernel};
use crate::lanes::Lanes;
use crate::lanes::amx::{Line, Lines, Sums, Unit};
use std::arch::x86_64::__m512;
use std::ops::Range;

/// Tokens whose sums wait for further chunks of columns; weights are made ready once for so many.
const TOGETHER: usize = 256;

/// Products as a kernel; lengths are already checked.
pub(in super::super) struct TileProduct<'a, 'b, W> {
    pub(in super::super) weights: W,
    /// Weights whose products are multiplied by the activations of those of `weights`.
    pub(in super::super) up: Option<W>,
    pub(in super::super) job: Job<'a, 'b>,
}

/// Which products, and where they go.
pub(in super::super) struct Job<'a, 'b> {
    pub(super) rows: Range<usize>,
    pub(super) x: Tiles<'b>,
    /// What becomes of the products with `weights`, and of those with `up`.
    pub(super) then: [Then<'a>; 2],
    pub(super) out: Columns<'a>,
}

impl<W: IntegerWeights> TileProduct<'_, '_, W> {
    pub(in super::super) fn start(self) {
        self.job.x.amx.run(self);
    }
}

impl<W: IntegerWeights> TileKernel for TileProduct<'_, '_, W> {
    #[inline(always)]
    fn run(self, amx: Amx) {
        let (s, Job { rows, x, then, out }) = (amx.avx512(), self.job);
        let panels = rows.start / PANEL..rows.end.div_ceil(PANEL);
        let panel = x.k.div_ceil(BLOCK) * <W::Integers<Avx512> as IntegerPanel<Avx512>>::BYTES;
        let mut walk = Walk { amx, unit: amx.unit(), x, lines: Lines::new(), sums: Sums::zero() };
        match self.up {
            None => {
                let mut ending = Plain { start: rows.start, then: then[0], out };
                for index in panels.clone().step_by(2) {
                    // A last panel without another is multiplied twice.
                    let second = (index + 1).min(panels.end - 1);
                    let pair = [self.weights.integers(s, index), self.weights.integers(s, second)];
                    walk.pair(&pair, 2 * panel, index, &mut ending);
                }
            }
            Some(up) => {
                let mut ending = Gated { start: rows.start, biases: [then[0].bias, then[1].bias], out };
                for index in panels {
                    let pair = [self.weights.integers(s, index), up.integers(s, index)];
                    walk.pair(&pair, panel, index, &mut ending);
                }
            }
        }
    }
}

/// All tokens, against one pair of panels after the other.
struct Walk<'b> {
    amx: Amx,
    unit: Unit,
    x: Tiles<'b>,
    lines: Lines<CAPACITY>,
    sums: Sums,
}

/// Sums of a token that wait for further chunks.
type Waiting = [[f32; PANEL]; 2];

/// A chunk of a pair of panels.
struct Chunk<'a> {
    /// Of the first panel.
    index: usize,
    /// Which of how many.
    at: (usize, usize),
    /// Whether weights are two bytes.
    words: bool,
    scales: [__m512; 2],
    /// Sums of the chunks before, token by token.
    waiting: &'a mut [Waiting],
}

/// Sixteen tokens whose sums are there.
#[derive(Clone, Copy)]
struct Done<'a> {
    /// The first, among those that wait together.
    first: usize,
    scales: &'a [[u8; 4]; TOKENS],
}

/// Blocks of panels that are wanted next, so many bytes from those of `pair`.
struct Ahead<'a, P> {
    pair: &'a [P; 2],
    blocks: Range<usize>,
    bytes: usize,
}

impl<P: IntegerPanel<Avx512>> Ahead<'_, P> {
    /// Asks for the next so many blocks: few at a time, since few can be on their way.
    #[inline(always)]
    fn ask(&mut self, s: Avx512, blocks: usize) {
        for _ in 0..blocks {
            let Some(block) = self.blocks.next() else { return };
            for panel in self.pair {
                panel.prefetch(s, panel.lines(block), self.bytes);
            }
        }
    }
}

impl Walk<'_> {
    /// A pair of panels; those that lie `ahead` bytes further are asked for meanwhile.
    #[inline(always)]
    fn pair<P: IntegerPanel<Avx512>>(&mut self, pair: &[P; 2], ahead: usize, index: usize, ending: &mut impl Ending) {
        let chunks = self.x.k.div_ceil(chunk(self.x.k));
        if chunks == 1 {
            return self.chunks(pair, ahead, index, &mut [], ending);
        }
        if chunks == 0 {
            let zero = self.amx.avx512().splat(0.0);
            return (0..self.x.n).for_each(|t| ending.write(self.amx.avx512(), index, t, [zero; 2]));
        }
        self.chunks(pair, ahead, index, &mut [[[0.0; PANEL]; 2]; TOGETHER], ending);
    }

    #[inline(always)]
    fn chunks<P: IntegerPanel<Avx512>>(
        &mut self,
        pair: &[P; 2],
        ahead: usize,
        index: usize,
        waiting: &mut [Waiting],
        ending: &mut impl Ending,
    ) {
        let (s, columns, blocks) = (self.amx.avx512(), chunk(self.x.k), self.x.k.div_ceil(BLOCK));
        let chunks = self.x.k.div_ceil(columns);
        for first in (0..self.x.n).step_by(TOGETHER) {
            for at in 0..chunks {
                let blocks = at * (columns / BLOCK)..blocks.min((at + 1) * (columns / BLOCK));
                self.lines.clear();
                let mut scales = [s.splat(0.0); 2];
                let mut words = true;
                for panel in 0..2 {
                    words = are_words(s, &pair[panel], blocks.start);
                    scales[panel] = append(self.amx, &pair[panel], blocks.clone(), words, &mut self.lines);
                }
                let mut chunk = Chunk { index, at: (at, chunks), words, scales, waiting: &mut *waiting };
                self.tokens(first, &mut chunk, ending, &mut Ahead { pair, blocks, bytes: ahead });
            }
        }
    }

    /// Tokens from `first` on, so many as wait together. While tiles multiply sixteen of them, the sums of those before are made
    /// floats.
    #[inline(always)]
    fn tokens<P: IntegerPanel<Avx512>>(
        &mut self,
        first: usize,
        chunk: &mut Chunk<'_>,
        ending: &mut impl Ending,
        next: &mut Ahead<'_, P>,
    ) {
        let (s, steps, x) = (self.amx.avx512(), self::chunk(self.x.k) / COLUMNS, self.x);
        let (a, b) = self.lines.written().split_at(self.lines.written().len() / 2);
        let count = TOGETHER.min(x.n - first);
        let mut before: Option<Done<'_>> = None;
        let each = next.blocks.len().div_ceil(count.div_ceil(TOKENS));
        let groups = x.groups().skip(first / TOKENS).take(count.div_ceil(TOKENS));
        for (group, (x, scales)) in groups.enumerate() {
            let x: &[[[Line; 2]; TOKENS]] = &x[chunk.at.0 * steps..];
            let x = &x[..steps.min(x.len())];
            if chunk.words {
                self.unit.words(x, [a, b]);
            } else {
                self.unit.bytes(x, [a, b]);
            }
            next.ask(s, each);
            if let Some(before) = before {
                write(s, &self.sums, chunk, before, (first, count), ending);
            }
            self.unit.store(&mut self.sums);
            before = Some(Done { first: group * TOKENS, scales: &scales[chunk.at.0] });
        }
        if let Some(last) = before {
            write(s, &self.sums, chunk, last, (first, count), ending);
        }
    }
}

/// Makes sums floats: they end, or wait for further chunks.
#[inline(always)]
fn write(
    s: Avx512,
    sums: &Sums,
    chunk: &mut Chunk<'_>,
    done: Done<'_>,
    (first, count): (usize, usize),
    ending: &mut impl Ending,
) {
    let (at, chunks) = chunk.at;
    for t in 0..TOKENS.min(count - done.first) {
        let token = f32::from_le_bytes(done.scales[t]);
        let mut values = [s.splat(0.0); 2];
        for panel in 0..2 {
            let [high, low] = sums.of(panel, t);
            let (high, low) = (s.to_f32(s.iload(high)), s.to_f32(s.iload(low)));
            let sum = s.mul(s.fma(high, s.splat(256.0), low), chunk.scales[panel]);
            let before = if at > 0 { s.load(&chunk.waiting[done.first + t][panel]) } else { s.splat(0.0) };
            values[panel] = s.fma(sum, s.splat(token), before);
        }
        if at + 1 == chunks {
            ending.write(s, chunk.index, first + done.first + t, values);
        } else {
            for panel in 0..2 {
                s.store(values[panel], &mut chunk.waiting[done.first + t][panel]);
            }
        }
    }
}
