//! The product with float activations.

use super::super::{AHEAD, PANEL, Panel, Weights};
use super::LinearLut;
use super::lines::{group, mask, part};
use crate::buffer::round_up;
use crate::lanes::Lanes;

/// The weights, with what the inner loop must know at compile time. 0 bits stand for "as the shape says": rare kinds are
/// not worth a kernel each.
#[derive(Clone, Copy)]
pub(super) struct View<'a, const BITS: usize, const LOOKUP: bool>(pub(super) LinearLut<'a>);

impl<'a, const BITS: usize, const LOOKUP: bool> Weights for View<'a, BITS, LOOKUP> {
    type Panel<S: Lanes> = PanelView<'a, S::I, BITS, LOOKUP>;
    #[inline(always)]
    fn panel<S: Lanes>(self, s: S, index: usize) -> Self::Panel<S> {
        let LinearLut { shape, lines, tables, beside, .. } = self.0;
        let panel = round_up(shape.k, 32) / 32 * shape.bits;
        let entries = if beside == 1 { (1 << shape.bits).max(16) } else { beside << shape.bits };
        let group = shape.group_rows();
        let set = if beside == 1 { index * PANEL / group } else { index };
        let first = index * PANEL / group;
        let base: [u8; 64] = if beside == 1 {
            [0; 64]
        } else {
            let mut bytes = [0; 64];
            for (lane, bytes) in bytes.as_chunks_mut().0.iter_mut().enumerate() {
                let table = (index * PANEL + lane).min(shape.rows - 1) / group - first;
                *bytes = ((table << shape.bits) as u32).to_le_bytes();
            }
            bytes
        };
        PanelView {
            lines: &lines[index * panel..][..panel],
            tables: &tables[set * shape.col_groups * entries..][..shape.col_groups * entries],
            bits: shape.bits,
            entries,
            chunks: shape.group_cols().div_ceil(32),
            base: s.iload(&base),
        }
    }
}

pub(super) struct PanelView<'a, I, const BITS: usize, const LOOKUP: bool> {
    lines: &'a [[u8; 64]],
    tables: &'a [[u8; 4]],
    bits: usize,
    entries: usize,
    /// Chunks that share a table.
    chunks: usize,
    /// What leads each lane to its own table.
    base: I,
}

impl<I, const BITS: usize, const LOOKUP: bool> PanelView<'_, I, BITS, LOOKUP> {
    #[inline(always)]
    fn bits(&self) -> usize {
        if BITS == 0 { self.bits } else { BITS }
    }
}

impl<'a, S: Lanes, const BITS: usize, const LOOKUP: bool> Panel<S> for PanelView<'a, S::I, BITS, LOOKUP> {
    /// The table: in a register, and in memory.
    type Chunk = (S::F, &'a [[u8; 4]]);
    type Lines = &'a [[u8; 64]];
    /// The low and the high parts, shifted so that the first column of the group is at the bottom.
    type Group = [S::I; 2];
    #[inline(always)]
    fn chunk(&self, s: S, chunk: usize) -> Self::Chunk {
        let table = &self.tables[chunk / self.chunks * self.entries..][..self.entries];
        match table.as_flattened().first_chunk() {
            Some(first) if LOOKUP && BITS <= 4 => (s.load_bytes(first), table),
            _ => (s.splat(0.0), table),
        }
    }
    #[inline(always)]
    fn lines(&self, index: usize) -> Self::Lines {
        &self.lines[index * self.bits()..][..self.bits()]
    }
    #[inline(always)]
    fn prefetch(&self, s: S, lines: Self::Lines) {
        for line in 0..self.bits() {
            s.prefetch(&lines[0], AHEAD + 64 * line);
        }
    }
    #[inline(always)]
    fn group(&self, s: S, lines: Self::Lines, g: usize) -> [S::I; 2] {
        group(s, lines, self.bits(), g)
    }
    #[inline(always)]
    fn column(&self, s: S, chunk: &Self::Chunk, group: &[S::I; 2], j: usize) -> S::F {
        let [low, high] = *group;
        let index = match self.bits() {
            1 | 2 | 4 => part(s, low, self.bits(), j),
            3 => s.ior(mask(s, part(s, low, 2, j), 2), s.shl(part(s, high, 1, j), 2)),
            6 => s.ior(mask(s, part(s, low, 4, j), 4), s.shl(mask(s, part(s, high, 2, j), 2), 4)),
            _ => s.shr(group[j / 4], j as u32 % 4 * 8),
        };
        if LOOKUP && BITS == 6 {
            match chunk.1.first_chunk() {
                Some(table) => s.lookup64(table, index),
                None => s.splat(0.0),
            }
        } else if LOOKUP {
            // Bits above the index may be anything: the table repeats.
            s.lookup16(chunk.0, index)
        } else {
            s.gather(chunk.1, s.ior(mask(s, index, self.bits()), self.base))
        }
    }
    #[inline(always)]
    fn close(&self, s: S, _chunk: &Self::Chunk, sum: S::F, total: S::F) -> S::F {
        s.add(total, sum)
    }
}
