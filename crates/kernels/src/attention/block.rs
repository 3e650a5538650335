//! One block of positions against all query rows of a group.

use super::{BLOCK, Element, Group, Keys, Mask, Rows, turned_at};
use crate::isa::Kernel;
use crate::lanes::{Lanes, load_part, store_part};
use crate::math::exp;
use crate::reduce::max_lanes;
use std::hint::black_box;

/// How many positions of keys are turned at a time.
pub(super) const TURNED: usize = 64;

/// How many positions ahead keys and values are asked for.
const AHEAD: usize = 64;

/// Where a block keeps what it needs in between.
pub(super) struct Area<'a> {
    /// `[dim][TURNED / 16][16]`: keys, turned.
    turned: &'a mut [[[f32; 16]; TURNED / 16]],
    /// `[rows][BLOCK]`: scores, then weights.
    scores: &'a mut [[f32; BLOCK]],
}

impl<'a> Area<'a> {
    pub(super) fn new(scratch: &'a mut [f32], rows: usize, dim: usize) -> Self {
        let (turned, scratch) = scratch.split_at_mut(dim * TURNED);
        Self { turned: turned.as_chunks_mut().0.as_chunks_mut().0, scores: scratch[..rows * BLOCK].as_chunks_mut().0 }
    }
}

pub(super) struct Block<'a, E> {
    pub(super) group: &'a Group<'a, E>,
    pub(super) index: usize,
    pub(super) area: Area<'a>,
    /// `[rows][dim + 2]`.
    pub(super) part: &'a mut [f32],
}

impl<E: Element> Kernel for Block<'_, E> {
    type Out = ();
    #[inline(always)]
    fn run<S: Lanes>(mut self, s: S) {
        let group = self.group;
        let start = self.index * BLOCK;
        let end = group.seen().min(start + BLOCK);
        let rows = group.rows();
        let halves = match group.keys {
            Keys::Rows(Rows { data, stride }) if S::FAST_TURN_F16 && group.dim.is_multiple_of(8) => {
                E::halves(data).map(|data| Rows { data, stride })
            }
            _ => None,
        };
        match (rows, halves) {
            (1, Some(keys)) => self.score_few::<S, 1>(s, keys, start, end),
            (2, Some(keys)) => self.score_few::<S, 2>(s, keys, start, end),
            (3, Some(keys)) => self.score_few::<S, 3>(s, keys, start, end),
            (4, Some(keys)) => self.score_few::<S, 4>(s, keys, start, end),
            _ => self.score_all(s, start, end),
        }
        for row in 0..rows {
            self.weights(s, row, start, end);
        }
        let mut row = 0;
        while row < rows {
            row += match rows - row {
                4.. if S::TILE >= 8 => self.weigh::<S, 4, 4>(s, row, start, end),
                3 if S::TILE >= 8 => self.weigh::<S, 3, 4>(s, row, start, end),
                2.. if S::TILE >= 4 => self.weigh::<S, 2, 2>(s, row, start, end),
                _ if S::TILE >= 4 => self.weigh::<S, 1, 4>(s, row, start, end),
                _ => self.weigh::<S, 1, 1>(s, row, start, end),
            };
        }
    }
}

impl<E: Element> Block<'_, E> {
    /// The scores of all `T` rows, for keys `start..end` in halves: turned as halves, eight coordinates of 32 positions at a time,
    /// and used at once. What is left of a vector is anything.
    #[inline(always)]
    fn score_few<S: Lanes, const T: usize>(&mut self, s: S, keys: Rows<'_, u16>, start: usize, end: usize) {
        // Extents that are known while compiling leave nothing to check between the products.
        match self.group.dim {
            64 if keys.stride == 64 => self.score_dim::<S, T, 8>(s, keys, start, end),
            _ => self.score_any::<S, T>(s, keys, start, end),
        }
    }

    /// Keys without gaps of `W` times eight coordinates.
    #[inline(always)]
    fn score_dim<S: Lanes, const T: usize, const W: usize>(
        &mut self,
        s: S,
        keys: Rows<'_, u16>,
        start: usize,
        end: usize,
    ) {
        let mut queries = [[[0.0; 8]; W]; T];
        for (t, query) in queries.iter_mut().enumerate() {
            query.as_flattened_mut().copy_from_slice(self.group.query(t));
        }
        let lines: &[[[u16; 8]; W]] = &keys.data.as_chunks().0.as_chunks().0[start..end];
        let (groups, rest) = lines.as_chunks::<32>();
        let mut last = [[[0; 8]; W]; 32];
        last[..rest.len()].copy_from_slice(rest);
        let n = lines.len().div_ceil(32);
        let group = |i: usize| groups.get(i).unwrap_or(&last);
        let mut i = 0;
        while i < n {
            let next = self.after_keys(keys, start + 32 * i + AHEAD, start, end);
            // Products of twice as many positions leave no multiplier waiting for the one before.
            i += match n - i {
                1 => self.score_step::<S, T, W, 1>(s, &queries, [group(i)], next, i),
                _ => self.score_step::<S, T, W, 2>(s, &queries, [group(i), group(i + 1)], next, i),
            };
        }
    }

    /// The scores of `G` times 32 positions, the first of which is the `at`th 32 of the block. Asks for what comes `next`. Gives `G`.
    #[inline(always)]
    fn score_step<S: Lanes, const T: usize, const W: usize, const G: usize>(
        &mut self,
        s: S,
        queries: &[[[f32; 8]; W]; T],
        keys: [&[[[u16; 8]; W]; 32]; G],
        next: &[u16],
        at: usize,
    ) -> usize {
        let mut turned = [[[0; 32]; 8]; G];
        let mut sums = [[[s.splat(0.0); 2]; G]; T];
        for w in 0..W {
            for g in 0..G {
                s.turn_f16(std::array::from_fn(|i| &keys[g][i][w]), &mut turned[g]);
            }
            // From memory a conversion takes one instruction, from a register two or three.
            let turned = black_box(&turned);
            for i in 0..8 {
                let mut lanes = [[s.splat(0.0); 2]; G];
                for g in 0..G {
                    // As many lines as coordinates: one each, so that memory never waits for arithmetic, nor that for memory.
                    s.prefetch(next, 64 * (G * (8 * w + i) + g));
                    let halves = turned[g][i].as_chunks::<16>().0;
                    lanes[g] = [s.load_f16(&halves[0]), s.load_f16(&halves[1])];
                }
                for t in 0..T {
                    let q = s.splat(queries[t][w][i]);
                    for g in 0..G {
                        for v in 0..2 {
                            sums[t][g][v] = s.fma(lanes[g][v], q, sums[t][g][v]);
                        }
                    }
                }
            }
        }
        for t in 0..T {
            let scores = &mut self.area.scores[t].as_chunks_mut::<16>().0[2 * at..];
            for (scores, sums) in scores.iter_mut().zip(sums[t].as_flattened()) {
                s.store(*sums, scores);
            }
        }
        G
    }

    /// The same for keys of any extent and with any gaps.
    #[inline(always)]
    fn score_any<S: Lanes, const T: usize>(&mut self, s: S, keys: Rows<'_, u16>, start: usize, end: usize) {
        let dim = self.group.dim;
        let mut queries: [&[f32]; T] = [&[]; T];
        for (t, query) in queries.iter_mut().enumerate() {
            *query = self.group.query(t);
        }
        let mut turned = [[0; 32]; 8];
        for at in (start..end).step_by(32) {
            let next = self.after_keys(keys, at + AHEAD, start, end);
            let mut sums = [[s.splat(0.0); 2]; T];
            for d in (0..dim).step_by(8) {
                let mut lines = [&[0; 8]; 32];
                for (i, line) in lines.iter_mut().enumerate() {
                    let key = (at + i).min(end - 1) * keys.stride;
                    *line = keys.data[key + d..].first_chunk().expect("a key is in bounds, as checked");
                }
                s.turn_f16(lines, &mut turned);
                for i in 0..8 {
                    s.prefetch(next, 64 * (d + i));
                    let halves = turned[i].as_chunks::<16>().0;
                    let lanes = [s.load_f16(&halves[0]), s.load_f16(&halves[1])];
                    for t in 0..T {
                        let q = s.splat(queries[t][d + i]);
                        for v in 0..2 {
                            sums[t][v] = s.fma(lanes[v], q, sums[t][v]);
                        }
                    }
                }
            }
            for t in 0..T {
                let scores = self.area.scores[t].as_chunks_mut::<16>().0;
                for v in 0..2 {
                    s.store(sums[t][v], &mut scores[(at - start) / 16 + v]);
                }
            }
        }
    }

    /// What is read after the keys before `at`: keys, or the first values of the block.
    #[inline(always)]
    fn after_keys<'k>(&self, keys: Rows<'k, u16>, at: usize, start: usize, end: usize) -> &'k [u16]
    where
        E: 'k,
        Self: 'k,
    {
        let values = self.group.values;
        match E::halves(values.data) {
            Some(halves) if at >= end => halves.get(start * values.stride..),
            _ => keys.data.get(at * keys.stride..),
        }
        .unwrap_or(&[])
    }

    /// The scores of all rows, for keys `start..end`.
    #[inline(always)]
    fn score_all<S: Lanes>(&mut self, s: S, start: usize, end: usize) {
        let rows = self.group.rows();
        for at in (start..end).step_by(TURNED) {
            self.turn(s, at, end.min(at + TURNED));
            let mut row = 0;
            while row < rows {
                let column = at - start;
                row += match rows - row {
                    4.. if S::TILE >= 8 => self.score::<S, 4, 4>(s, row, column),
                    3 if S::TILE >= 8 => self.score::<S, 3, 4>(s, row, column),
                    2.. if S::TILE >= 4 => self.score::<S, 2, 2>(s, row, column),
                    _ if S::TILE >= 4 => self.score::<S, 1, 4>(s, row, column),
                    _ => self.score::<S, 1, 1>(s, row, column),
                };
            }
        }
    }

    /// Lays keys `at..end` (at most [`TURNED`]) out in columns. What is not there is anything.
    #[inline(always)]
    fn turn<S: Lanes>(&mut self, s: S, at: usize, end: usize) {
        let dim = self.group.dim;
        match self.group.keys {
            Keys::Turned(data) => {
                let blocks = data[turned_at(dim, at)..].as_chunks::<16>().0.chunks_exact(dim);
                for (v, block) in blocks.take((end - at).div_ceil(16)).enumerate() {
                    for (turned, column) in self.area.turned[..dim].iter_mut().zip(block) {
                        s.store(E::lanes(s, column), &mut turned[v]);
                    }
                }
            }
            Keys::Rows(keys) => {
                let ahead = AHEAD * keys.stride * size_of::<E>();
                for v in 0..(end - at).div_ceil(16) {
                    let group = &keys.data[(at + 16 * v) * keys.stride..];
                    let last = (end - at - 16 * v).min(16) - 1;
                    for d in (0..dim).step_by(16) {
                        let turned = &mut self.area.turned[d..dim.min(d + 16)];
                        let mut lines = [s.splat(0.0); 16];
                        for (i, line) in lines.iter_mut().enumerate() {
                            let key = &group[i.min(last) * keys.stride + d..][..turned.len()];
                            s.prefetch(key, ahead);
                            *line = load_element(s, key);
                        }
                        let columns = s.transpose(lines);
                        for (i, turned) in turned.iter_mut().enumerate() {
                            s.store(columns[i], &mut turned[v]);
                        }
                    }
                }
            }
        }
    }

    /// The products of queries `row..row + T` with the turned keys, into the scores from `column` on; `C` vectors of
    /// sixteen positions at a time. Gives `T`.
    #[inline(always)]
    fn score<S: Lanes, const T: usize, const C: usize>(&mut self, s: S, row: usize, column: usize) -> usize {
        let dim = self.group.dim;
        let mut queries: [&[f32]; T] = [&[]; T];
        for (t, query) in queries.iter_mut().enumerate() {
            *query = &self.group.query(row + t)[..dim];
        }
        let turned = &self.area.turned[..dim];
        for first in (0..TURNED / 16).step_by(C) {
            let mut sums = [[s.splat(0.0); C]; T];
            for d in 0..dim {
                let mut keys = [s.splat(0.0); C];
                for c in 0..C {
                    keys[c] = s.load(&turned[d][first + c]);
                }
                for t in 0..T {
                    let q = s.splat(queries[t][d]);
                    for c in 0..C {
                        sums[t][c] = s.fma(keys[c], q, sums[t][c]);
                    }
                }
            }
            for t in 0..T {
                for c in 0..C {
                    let out = &mut self.area.scores[row + t].as_chunks_mut::<16>().0[column / 16 + first + c];
                    s.store(sums[t][c], out);
                }
            }
        }
        T
    }

    /// Scores to weights: scale, mask, and `e^(score − max)`, with the largest score and the sum into the part.
    #[inline(always)]
    fn weights<S: Lanes>(&mut self, s: S, row: usize, start: usize, end: usize) {
        let Group { width, scale, mask, dim, .. } = *self.group;
        let token = row % width;
        let seen = self.group.limit(token).clamp(start, end) - start;
        let (scores, rest) = self.area.scores[row][..(end - start).next_multiple_of(16)].split_at_mut(seen);
        rest.fill(f32::NEG_INFINITY);
        let factor = s.splat(scale);
        match mask {
            Mask::Additive { values, stride } => {
                let mask = &values[token * stride + start..][..seen];
                for (part, mask) in scores.chunks_mut(16).zip(mask.chunks(16)) {
                    let scaled = s.mul(load_part(s, part, 0.0), factor);
                    store_part(s, s.add(scaled, load_part(s, mask, 0.0)), part);
                }
            }
            _ => {
                for part in scores.chunks_mut(16) {
                    store_part(s, s.mul(load_part(s, part, 0.0), factor), part);
                }
            }
        }
        let max = max_lanes(s, scores);
        let zero = s.splat(if max == f32::NEG_INFINITY { 0.0 } else { max });
        let mut sum = s.splat(0.0);
        let vectors = self.area.scores[row].as_chunks_mut::<16>().0;
        let (vectors, unseen) = vectors[..(end - start).div_ceil(16)].split_at_mut(seen.div_ceil(16));
        unseen.fill([0.0; 16]);
        for part in vectors {
            let weight = exp(s, s.sub(s.load(part), zero));
            sum = s.add(sum, weight);
            s.store(weight, part);
        }
        self.part[row * (dim + 2) + dim..][..2].copy_from_slice(&[max, s.sum(sum)]);
    }

    /// The sums of the values, weighted, for query rows `row..row + T`, `C` vectors of coordinates at a time. Gives `T`.
    #[inline(always)]
    fn weigh<S: Lanes, const T: usize, const C: usize>(&mut self, s: S, row: usize, start: usize, end: usize) -> usize {
        let Group { values, width, dim, .. } = *self.group;
        let mut last = start;
        for t in 0..T {
            last = last.max(self.group.limit((row + t) % width).min(end));
        }
        let mut weights: [&[f32]; T] = [&[]; T];
        for (t, weights) in weights.iter_mut().enumerate() {
            *weights = &self.area.scores[row + t][..last - start];
        }
        let rows = values.data[start * values.stride..].chunks(values.stride.max(dim));
        let mut d = 0;
        while dim - d >= 16 * C {
            let mut sums = [[s.splat(0.0); C]; T];
            for first in (0..last - start).step_by(AHEAD) {
                let n = AHEAD.min(last - start - first);
                let next = self.after_values(start + first + AHEAD, end);
                for (i, line) in rows.clone().skip(first).take(n).enumerate() {
                    let line = line[d..d + 16 * C].as_chunks::<16>().0;
                    for c in 0..C {
                        if (c * 16 * size_of::<E>()).is_multiple_of(64) {
                            s.prefetch(next, (i * values.stride + d + 16 * c) * size_of::<E>());
                        }
                        let value = E::lanes(s, &line[c]);
                        for t in 0..T {
                            sums[t][c] = s.fma(value, s.splat(weights[t][first + i]), sums[t][c]);
                        }
                    }
                }
            }
            for t in 0..T {
                let out = self.part[(row + t) * (dim + 2) + d..][..16 * C].as_chunks_mut::<16>().0;
                for c in 0..C {
                    s.store(sums[t][c], &mut out[c]);
                }
            }
            d += 16 * C;
        }
        while d < dim {
            let step = 16.min(dim - d);
            let mut sums = [s.splat(0.0); T];
            for (i, line) in rows.clone().take(last - start).enumerate() {
                let value = load_element(s, &line[d..d + step]);
                for t in 0..T {
                    sums[t] = s.fma(value, s.splat(weights[t][i]), sums[t]);
                }
            }
            for t in 0..T {
                store_part(s, sums[t], &mut self.part[(row + t) * (dim + 2) + d..][..step]);
            }
            d += step;
        }
        T
    }

    /// What is read after the values before `at`: values, or the first keys of the next block.
    #[inline(always)]
    fn after_values(&self, at: usize, end: usize) -> &[E] {
        let rows = match self.group.keys {
            Keys::Rows(keys) if at >= end => keys,
            _ => self.group.values,
        };
        rows.data.get(at * rows.stride..).unwrap_or(&[])
    }
}

/// Up to sixteen elements; what is missing is zero.
#[inline(always)]
pub(super) fn load_element<S: Lanes, E: Element>(s: S, p: &[E]) -> S::F {
    match p.first_chunk::<16>() {
        Some(all) => E::lanes(s, all),
        None => {
            let mut l = [E::ZERO; 16];
            l[..p.len()].copy_from_slice(p);
            E::lanes(s, &l)
        }
    }
}
