//! Blocks of positions against pairs of tiles of query rows.

use super::super::{Group, Mask, Rows, add_row, finish, start};
use super::operands::{F, cut, cut_keys, cut_queries, cut_values};
use super::{BLOCK, COLUMNS, HALVES, HEIGHT, ROWS, Sizes};
use crate::isa::{Amx, Avx512, TileKernel};
use crate::lanes::amx::{Halves, Unit};
use crate::lanes::{Lanes, load_part, store_part};
use std::f32::consts::{LN_2, LOG2_E};

/// What is kept between steps.
pub(super) struct Area<'a> {
    /// `[pairs][2][steps]`.
    pub(super) queries: &'a mut [Halves],
    /// `[BLOCK / 16][steps]`.
    pub(super) keys: &'a mut [Halves],
    /// `[2 · steps][BLOCK / 32]`: sixteen coordinates each.
    pub(super) values: &'a mut [Halves],
    /// `[2][BLOCK / 32]`.
    weights: &'a mut [Halves],
    /// `[ROWS][BLOCK]`.
    scores: &'a mut [f32],
    /// `[ROWS][32 · steps]`.
    sums: &'a mut [f32],
    /// Of each row of a block the largest score and the sum of the exponentials.
    figures: [[f32; 2]; ROWS],
    /// `[rows][2]`: those of the blocks so far.
    running: &'a mut [[f32; 2]],
}

impl<'a> Area<'a> {
    fn new(scratch: &'a mut [f32], rows: usize, dim: usize) -> Self {
        let Sizes { pairs, steps } = Sizes::new(rows, dim);
        // To the start of a cache line.
        let skip = scratch.as_ptr().align_offset(64).min(15);
        let mut rest = &mut scratch[skip..];
        let queries = halves(&mut rest, 2 * pairs * steps);
        let keys = halves(&mut rest, BLOCK / HEIGHT * steps);
        let values = halves(&mut rest, 2 * steps * BLOCK / COLUMNS);
        let weights = halves(&mut rest, 2 * BLOCK / COLUMNS);
        let scores = take(&mut rest, ROWS * BLOCK);
        let sums = take(&mut rest, ROWS * COLUMNS * steps);
        let running = take(&mut rest, 2 * rows).as_chunks_mut().0;
        Self { queries, keys, values, weights, scores, sums, figures: [[0.0; 2]; ROWS], running }
    }
}

fn take<'a>(rest: &mut &'a mut [f32], n: usize) -> &'a mut [f32] {
    let (first, after) = std::mem::take(rest).split_at_mut(n);
    *rest = after;
    first
}

fn halves<'a>(rest: &mut &'a mut [f32], n: usize) -> &'a mut [Halves] {
    take(rest, n * HALVES).as_chunks_mut::<16>().0.as_chunks_mut::<HEIGHT>().0.as_chunks_mut::<2>().0
}

/// Attention with the numbers of this module; `scratch` is at least [`super::scratch_len`].
pub(in super::super) struct Tiled<'a> {
    pub(in super::super) group: &'a Group<'a, u16>,
    pub(in super::super) keys: Rows<'a, u16>,
    pub(in super::super) scratch: &'a mut [f32],
    pub(in super::super) out: &'a mut [f32],
}

impl TileKernel for Tiled<'_> {
    #[inline(always)]
    fn run(self, amx: Amx) {
        let s = amx.avx512();
        let Self { group, keys, scratch, out } = self;
        let (rows, dim) = (group.rows(), group.dim);
        let Sizes { pairs, steps } = Sizes::new(rows, dim);
        let mut area = Area::new(scratch, rows, dim);
        let unit = amx.unit();
        out.fill(0.0);
        start(area.running);
        cut_queries(s, group, &mut area);
        for first in (0..group.seen()).step_by(BLOCK) {
            let end = group.seen().min(first + BLOCK);
            cut_keys(s, keys, dim, first, end, &mut area);
            cut_values(s, group.values, dim, first, end, &mut area);
            for pair in 0..pairs {
                let here = pair * ROWS..rows.min((pair + 1) * ROWS);
                let mut sees = [0; ROWS];
                let mut seen = 0;
                for (row, sees) in here.clone().zip(&mut sees) {
                    *sees = group.limit(row % group.width).clamp(first, end) - first;
                    seen = seen.max(*sees);
                }
                if seen == 0 {
                    continue;
                }
                score(&unit, &mut area, pair, steps, seen);
                for (i, row) in here.clone().enumerate() {
                    let mask = match group.mask {
                        Mask::Additive { values, stride } => {
                            Some(&values[row % group.width * stride + first..][..seen])
                        }
                        _ => None,
                    };
                    weigh(s, sees[i], mask, i, seen, &mut area);
                }
                mix(&unit, &mut area, steps, seen);
                for (i, row) in here.enumerate() {
                    let sums = &area.sums[i * COLUMNS * steps..][..dim];
                    add_row(s, sums, area.figures[i], &mut area.running[row], &mut out[row * dim..][..dim]);
                }
            }
        }
        finish(s, dim, area.running, out);
    }
}

/// The products of a pair of tiles of queries with the first `seen` keys.
#[inline(always)]
fn score(unit: &Unit, area: &mut Area<'_>, pair: usize, steps: usize, seen: usize) {
    let (a, b) = area.queries[2 * pair * steps..][..2 * steps].split_at(steps);
    for (i, keys) in area.keys.chunks_exact(2 * steps).take(seen.div_ceil(COLUMNS)).enumerate() {
        let (first, second) = keys.split_at(steps);
        unit.halves([a, b], [first, second], &mut area.scores[COLUMNS * i..], BLOCK);
    }
}

/// Scores of one row, in units of ln 2, to weights, with the largest score and the sum into the figures.
#[inline(always)]
fn weigh(s: Avx512, sees: usize, mask: Option<&[f32]>, row: usize, seen: usize, area: &mut Area<'_>) {
    let scores = &mut area.scores[row * BLOCK..][..seen.next_multiple_of(COLUMNS)];
    scores[sees..].fill(f32::NEG_INFINITY);
    if let Some(mask) = mask {
        for (part, mask) in scores[..sees].chunks_mut(16).zip(mask.chunks(16)) {
            store_part(s, s.fma(load_part(s, mask, 0.0), s.splat(LOG2_E), load_part(s, part, 0.0)), part);
        }
    }
    let vectors = scores.as_chunks::<16>().0.as_chunks::<2>().0;
    let seeing = sees.div_ceil(COLUMNS);
    let mut largest = [s.splat(f32::NEG_INFINITY); 2];
    for vectors in &vectors[..seeing] {
        for (largest, vector) in largest.iter_mut().zip(vectors) {
            *largest = s.max(s.load(vector), *largest);
        }
    }
    let max = s.largest(s.max(largest[0], largest[1]));
    let zero = s.splat(if max == f32::NEG_INFINITY { 0.0 } else { max });
    let mut sums = [s.splat(0.0); 2];
    for (step, vectors) in vectors.iter().enumerate() {
        let mut weights = [s.splat(0.0); 2];
        if step < seeing {
            for i in 0..2 {
                weights[i] = power(s, s.sub(s.load(&vectors[i]), zero));
                sums[i] = s.add(sums[i], weights[i]);
            }
        }
        let [high, low] = cut(s, weights[0], weights[1]);
        let halves = &mut area.weights[row / HEIGHT * (BLOCK / COLUMNS) + step];
        s.store(high, &mut halves[0][row % HEIGHT]);
        s.store(low, &mut halves[1][row % HEIGHT]);
    }
    area.figures[row] = [max * LN_2, s.sum(s.add(sums[0], sums[1]))];
}

/// `2^a` for `a <= 0`, at most 2^-18 of it off, and 0 below 2^-126. The polynomial is a minimax fit on -0.5..=0.5.
#[inline(always)]
fn power(s: Avx512, a: F) -> F {
    let n = s.round(a);
    let f = s.sub(a, n);
    let mut p = s.splat(0.009_570_102);
    for c in [0.055_917_86, 0.240_247_45, 0.693_121_8, 0.999_999_3] {
        p = s.fma(p, f, s.splat(c));
    }
    // Denormals take hundreds of cycles.
    let least = s.splat(-126.0);
    s.select_gt(least, a, s.splat(0.0), s.scale2(p, s.max(least, n)))
}

/// The sums of the first `seen` values, weighted.
#[inline(always)]
fn mix(unit: &Unit, area: &mut Area<'_>, steps: usize, seen: usize) {
    let n = seen.div_ceil(COLUMNS);
    let (a, b) = area.weights.split_at(BLOCK / COLUMNS);
    for (i, values) in area.values.chunks_exact(2 * BLOCK / COLUMNS).enumerate() {
        let (first, second) = values.split_at(BLOCK / COLUMNS);
        unit.halves([&a[..n], &b[..n]], [&first[..n], &second[..n]], &mut area.sums[COLUMNS * i..], COLUMNS * steps);
    }
}
