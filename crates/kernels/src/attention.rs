//! Attention of a group of query heads over the keys and values of their one key-value head.
//!
//! # Blocks
//!
//! The positions are cut into blocks of [`BLOCK`], always from position 0. A block gives, per query row, the largest score,
//! the sum of the exponentials, and the weighted sum of the values, not yet divided; blocks are merged in order. So the
//! bits depend neither on how blocks and heads are spread over threads ([`attend_block`] and [`merge`] give what
//! [`attend`] gives), nor on how many tokens a call has.
//!
//! Inside a block a score is one chain of fused multiply-adds over the coordinates, a weighted sum one chain over the
//! positions, both in order from zero.
//!
//! # Roofline
//!
//! Per position and key-value head `4 · dim` bytes of f16 keys and values are read once for the whole group of query rows,
//! and `4 · dim` operations done a query row. Keys are turned (64 positions at a time) so that a vector holds sixteen
//! positions: no horizontal sums, and a tile of 4 query rows by 4 vectors reuses each load four times.

mod block;
#[cfg(test)]
mod tests;
pub mod tiles;

use crate::isa::{Isa, Kernel};
use crate::lanes::{Lanes, load_part, store_part};
use crate::math::exp;
use block::{Area, Block};

/// Positions per block.
pub const BLOCK: usize = 256;

/// What keys and values may be made of: `u16` (f16 bits) or `f32`.
pub trait Element: Copy + private::Load {}
impl Element for u16 {}
impl Element for f32 {}

mod private {
    use crate::lanes::Lanes;

    pub trait Load: Sized {
        const ZERO: Self;
        #[allow(private_bounds, private_interfaces, reason = "the trait is sealed")]
        fn lanes<S: Lanes>(s: S, p: &[Self; 16]) -> S::F;
        /// The elements, if they are halves.
        fn halves(all: &[Self]) -> Option<&[u16]>;
    }

    impl Load for u16 {
        const ZERO: u16 = 0;
        #[inline(always)]
        #[allow(private_bounds, private_interfaces, reason = "the trait is sealed")]
        fn lanes<S: Lanes>(s: S, p: &[u16; 16]) -> S::F {
            s.load_f16(p)
        }
        #[inline(always)]
        fn halves(all: &[u16]) -> Option<&[u16]> {
            Some(all)
        }
    }

    impl Load for f32 {
        const ZERO: f32 = 0.0;
        #[inline(always)]
        #[allow(private_bounds, private_interfaces, reason = "the trait is sealed")]
        fn lanes<S: Lanes>(s: S, p: &[f32; 16]) -> S::F {
            s.load(p)
        }
        #[inline(always)]
        fn halves(_: &[f32]) -> Option<&[u16]> {
            None
        }
    }
}

/// Which positions a token sees, on top of `0..len`.
#[derive(Clone, Copy, Debug)]
pub enum Mask<'a> {
    /// All of them.
    Full,
    /// Token `t` sees positions `0..=first + t`.
    Causal {
        /// The position of token 0.
        first: usize,
    },
    /// Token `t` sees positions `0..=last[t]`, or all of them if `last[t]` is negative.
    UpTo {
        /// The last position of each token.
        last: &'a [i32],
    },
    /// `values[t · stride + p]` is added to the score of position `p` for token `t`.
    Additive {
        /// The mask, at least `len` values for each token.
        values: &'a [f32],
        /// From the values of one token to those of the next.
        stride: usize,
    },
}

/// The rows of a matrix inside a larger slice.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a, E> {
    /// Row `i` starts at `data[i · stride]`.
    pub data: &'a [E],
    /// From the start of one row to the next.
    pub stride: usize,
}

/// Where keys lie.
#[derive(Clone, Copy, Debug)]
pub enum Keys<'a, E> {
    /// As rows, `[len, dim]`.
    Rows(Rows<'a, E>),
    /// Turned, sixteen positions side by side: coordinate `d` of position `p` at [`turned_at`]`(dim, p) + 16 · d`. The
    /// slice reaches to a multiple of sixteen positions; what lies past `len` may be anything. This is what the kernel
    /// reads fastest: rows must be turned first, which for one token takes as long as all the rest.
    Turned(&'a [E]),
}

impl<'a, E> From<Rows<'a, E>> for Keys<'a, E> {
    fn from(rows: Rows<'a, E>) -> Self {
        Self::Rows(rows)
    }
}

/// Where in turned keys the first coordinate of a position lies; the others follow each sixteen further.
pub const fn turned_at(dim: usize, position: usize) -> usize {
    position / 16 * 16 * dim + position % 16
}

/// The queries: `heads · width` rows of `dim` values.
#[derive(Clone, Copy, Debug)]
pub struct Queries<'a> {
    /// Token `t` of head `h` starts at `data[h · head_stride + t · token_stride]`.
    pub data: &'a [f32],
    /// From one head to the next.
    pub head_stride: usize,
    /// From one token to the next.
    pub token_stride: usize,
}

/// One group of query heads, with the head of keys and values that they share.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a, E> {
    /// Query heads in the group.
    pub heads: usize,
    /// Tokens.
    pub width: usize,
    /// Values per head.
    pub dim: usize,
    /// What scores are multiplied with.
    pub scale: f32,
    /// The queries.
    pub queries: Queries<'a>,
    /// `[len, dim]`.
    pub keys: Keys<'a, E>,
    /// `[len, dim]`.
    pub values: Rows<'a, E>,
    /// How many positions there are; at least 1.
    pub len: usize,
    /// Which of them a token sees.
    pub mask: Mask<'a>,
}

impl<'a, E: Element> Group<'a, E> {
    /// Query rows: row `h · width + t` is token `t` of head `h`.
    pub fn rows(&self) -> usize {
        self.heads * self.width
    }

    /// How many blocks the positions that any token sees are cut into.
    pub fn blocks(&self) -> usize {
        self.seen().div_ceil(BLOCK)
    }

    /// The end of the positions that any token sees.
    fn seen(&self) -> usize {
        match self.mask {
            Mask::UpTo { .. } => (0..self.width).map(|t| self.limit(t)).max().unwrap_or(self.len),
            _ => self.limit(self.width - 1),
        }
    }

    /// The end of the positions that token `t` sees.
    #[inline(always)]
    fn limit(&self, t: usize) -> usize {
        match self.mask {
            Mask::Causal { first } => self.len.min(first + t + 1),
            Mask::UpTo { last } => usize::try_from(last[t]).map_or(self.len, |last| self.len.min(last + 1)),
            _ => self.len,
        }
    }

    #[inline(always)]
    fn query(&self, row: usize) -> &'a [f32] {
        let (h, t) = (row / self.width, row % self.width);
        &self.queries.data[h * self.queries.head_stride + t * self.queries.token_stride..][..self.dim]
    }

    fn check(&self) {
        let Self { heads, width, dim, len, .. } = *self;
        assert!(heads > 0 && width > 0 && dim > 0 && len > 0, "attention over nothing: {heads} {width} {dim} {len}");
        let (keys, need) = match self.keys {
            Keys::Rows(rows) => (rows.data.len(), (len - 1) * rows.stride + dim),
            Keys::Turned(data) => (data.len(), len.next_multiple_of(16) * dim),
        };
        assert!(keys >= need, "attention: {keys} of keys, {need} needed");
        let stride = self.values.stride;
        assert!(len == 1 || stride >= dim, "attention: values of {dim} overlap at a stride of {stride}");
        let need = (len - 1) * stride + dim;
        assert!(self.values.data.len() >= need, "attention: {} of values, {need} needed", self.values.data.len());
        let q = &self.queries;
        let need = (heads - 1) * q.head_stride + (width - 1) * q.token_stride + dim;
        assert!(q.data.len() >= need, "attention: {} of queries, {need} needed", q.data.len());
        if let Mask::UpTo { last } = self.mask {
            assert!(last.len() >= width, "attention: the last position of {} tokens, of {width} needed", last.len());
        }
        if let Mask::Additive { values, stride } = self.mask {
            let need = (width - 1) * stride + len;
            assert!(values.len() >= need, "attention: {} of mask, {need} needed", values.len());
        }
    }
}

/// How many f32 of scratch [`attend`] and [`attend_block`] need for `rows` query rows of `dim` values.
pub const fn scratch_len(rows: usize, dim: usize) -> usize {
    dim * block::TURNED + rows * BLOCK + part_len(rows, dim) + 2 * rows
}

/// How many f32 one block's result takes: per row `dim` sums, the largest score, the sum of the exponentials.
pub const fn part_len(rows: usize, dim: usize) -> usize {
    rows * (dim + 2)
}

/// Attention over all positions: `out[row]` for row `h · width + t`, `[rows, dim]` without gaps.
///
/// A row that sees nothing (scores all -infinity) becomes NaN, as softmax says. `scratch` is at least [`scratch_len`].
pub fn attend<E: Element>(isa: Isa, group: &Group<'_, E>, scratch: &mut [f32], out: &mut [f32]) {
    group.check();
    let (rows, dim) = (group.rows(), group.dim);
    assert_eq!(out.len(), rows * dim, "attention: out has {} values, {rows} rows of {dim} needed", out.len());
    isa.run(Whole { group, scratch: checked(scratch, rows, dim), out });
}

/// One block of positions (`block < group.blocks()`): the result goes to `part`, [`part_len`] long.
pub fn attend_block<E: Element>(isa: Isa, group: &Group<'_, E>, block: usize, scratch: &mut [f32], part: &mut [f32]) {
    group.check();
    let (rows, dim) = (group.rows(), group.dim);
    assert!(block < group.blocks(), "attention: block {block} of {}", group.blocks());
    assert_eq!(part.len(), part_len(rows, dim), "attention: the part has {} values", part.len());
    isa.run(Block { group, index: block, area: Area::new(checked(scratch, rows, dim), rows, dim), part });
}

/// Merges the results of all blocks, each at the start of one of `parts`, which are `stride` long and in order, into `out`,
/// `[rows, dim]`.
pub fn merge(isa: Isa, rows: usize, dim: usize, parts: &[f32], stride: usize, out: &mut [f32]) {
    let part = part_len(rows, dim);
    assert!(part > 0 && stride >= part, "merge: parts of {part} that are {stride} long");
    assert!(!parts.is_empty() && parts.len().is_multiple_of(stride), "merge: {} values", parts.len());
    assert_eq!(out.len(), rows * dim, "merge: out has {} values, {rows} rows of {dim} needed", out.len());
    isa.run(Merge { dim, parts, stride, out });
}

fn checked(scratch: &mut [f32], rows: usize, dim: usize) -> &mut [f32] {
    let need = scratch_len(rows, dim);
    assert!(scratch.len() >= need, "attention: scratch of {}, {need} needed", scratch.len());
    &mut scratch[..need]
}

struct Whole<'a, E> {
    group: &'a Group<'a, E>,
    scratch: &'a mut [f32],
    out: &'a mut [f32],
}

impl<E: Element> Kernel for Whole<'_, E> {
    type Out = ();
    #[inline(always)]
    fn run<S: Lanes>(self, s: S) {
        let (rows, dim) = (self.group.rows(), self.group.dim);
        let (running, scratch) = self.scratch.split_at_mut(2 * rows);
        let running = running.as_chunks_mut().0;
        let (part, scratch) = scratch.split_at_mut(part_len(rows, dim));
        self.out.fill(0.0);
        start(running);
        for index in 0..self.group.blocks() {
            Block { group: self.group, index, area: Area::new(scratch, rows, dim), part: &mut *part }.run(s);
            add(s, dim, part, running, self.out);
        }
        finish(s, dim, running, self.out);
    }
}

struct Merge<'a> {
    dim: usize,
    parts: &'a [f32],
    stride: usize,
    out: &'a mut [f32],
}

impl Kernel for Merge<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Lanes>(self, s: S) {
        let Self { dim, parts, stride, out } = self;
        // Half of them lie in another processor's cache: they come all at once, not one after the other.
        for part in parts.chunks_exact(stride) {
            for line in (0..out.len() / dim * (dim + 2) * size_of::<f32>()).step_by(64) {
                s.prefetch(part, line);
            }
        }
        out.fill(0.0);
        // The figures of sixteen rows make a vector each.
        for (index, out) in out.chunks_mut(16 * dim).enumerate() {
            let mut running = [s.splat(f32::NEG_INFINITY), s.splat(0.0)];
            for part in parts.chunks_exact(stride) {
                let part = &part[16 * index * (dim + 2)..][..out.len() / dim * (dim + 2)];
                let mut figures = [[0.0; 16]; 2];
                for (row, part) in part.chunks_exact(dim + 2).enumerate() {
                    (figures[0][row], figures[1][row]) = (part[dim], part[dim + 1]);
                }
                let factors = join(s, &mut running, [s.load(&figures[0]), s.load(&figures[1])]);
                let mut each = [[0.0; 16]; 2];
                s.store(factors[0], &mut each[0]);
                s.store(factors[1], &mut each[1]);
                for (row, (part, out)) in part.chunks_exact(dim + 2).zip(out.chunks_exact_mut(dim)).enumerate() {
                    add_scaled(s, &part[..dim], s.splat(each[0][row]), s.splat(each[1][row]), out);
                }
            }
            let mut sums = [0.0; 16];
            s.store(running[1], &mut sums);
            for (out, sum) in out.chunks_exact_mut(dim).zip(sums) {
                divide(s, sum, out);
            }
        }
    }
}

/// Nothing seen yet: the largest score is -infinity, the sum 0.
fn start(running: &mut [[f32; 2]]) {
    running.fill([f32::NEG_INFINITY, 0.0]);
}

/// Adds a block's result to the running figures (largest score and sum, per row) and the sums in `out`.
#[inline(always)]
fn add<S: Lanes>(s: S, dim: usize, part: &[f32], running: &mut [[f32; 2]], out: &mut [f32]) {
    let rows = running.iter_mut().zip(part.chunks_exact(dim + 2));
    for ((running, part), out) in rows.zip(out.chunks_exact_mut(dim)) {
        add_row(s, &part[..dim], [part[dim], part[dim + 1]], running, out);
    }
}

/// One row of [`add`]: the sums, the largest score and the sum of the exponentials.
#[inline(always)]
fn add_row<S: Lanes>(s: S, values: &[f32], [largest, weights]: [f32; 2], running: &mut [f32; 2], out: &mut [f32]) {
    let mut lanes = [s.splat(running[0]), s.splat(running[1])];
    let [old, new] = join(s, &mut lanes, [s.splat(largest), s.splat(weights)]);
    add_scaled(s, values, old, new, out);
    *running = [first(s, lanes[0]), first(s, lanes[1])];
}

/// Adds figures of a block (largest scores, sums of the exponentials) to the running ones. Gives what the sums so far, and those
/// of the block, are to be multiplied with.
#[inline(always)]
fn join<S: Lanes>(s: S, [max, sum]: &mut [S::F; 2], [largest, weights]: [S::F; 2]) -> [S::F; 2] {
    let lowest = s.splat(f32::NEG_INFINITY);
    let top = s.select_gt(largest, *max, largest, *max);
    let zero = s.select_gt(top, lowest, top, s.splat(0.0));
    let (old, new) = (exp(s, s.sub(*max, zero)), exp(s, s.sub(largest, zero)));
    *sum = s.add(s.mul(*sum, old), s.mul(weights, new));
    *max = top;
    [old, new]
}

#[inline(always)]
fn add_scaled<S: Lanes>(s: S, values: &[f32], old: S::F, new: S::F, out: &mut [f32]) {
    for (out, values) in out.chunks_mut(16).zip(values.chunks(16)) {
        let scaled = s.mul(load_part(s, out, 0.0), old);
        store_part(s, s.fma(load_part(s, values, 0.0), new, scaled), out);
    }
}

/// Divides the sums by the sums of the exponentials.
#[inline(always)]
fn finish<S: Lanes>(s: S, dim: usize, running: &[[f32; 2]], out: &mut [f32]) {
    for ([_, sum], out) in running.iter().zip(out.chunks_exact_mut(dim)) {
        divide(s, *sum, out);
    }
}

#[inline(always)]
fn divide<S: Lanes>(s: S, sum: f32, out: &mut [f32]) {
    for out in out.chunks_mut(16) {
        store_part(s, s.div(load_part(s, out, 0.0), s.splat(sum)), out);
    }
}

#[inline(always)]
fn first<S: Lanes>(s: S, a: S::F) -> f32 {
    let mut l = [0.0; 16];
    s.store(a, &mut l);
    l[0]
}
