//! The operands of products by tiles: numbers cut in two halves, in the order that tiles have them in.
//!
//! Of 32 numbers, those 16 apart share a lane: the order of a sum does not matter as long as both operands have the same.

use super::super::block::load_element;
use super::super::{Element, Group, Rows};
use super::block::Area;
use super::{BLOCK, COLUMNS, HEIGHT};
use crate::isa::Avx512;
use crate::lanes::Lanes;
use std::f32::consts::LOG2_E;

pub(super) type F = <Avx512 as Lanes>::F;

/// Two numbers for each lane in bfloat16, the first below: what stands above, and what is left.
#[inline(always)]
pub(super) fn cut(s: Avx512, a: F, b: F) -> [F; 2] {
    let top = s.isplat(0xffff_0000_u32 as i32);
    let (a_high, b_high) = (s.iand(s.as_bits(a), top), s.iand(s.as_bits(b), top));
    let (a_low, b_low) = (s.sub(a, s.as_float(a_high)), s.sub(b, s.as_float(b_high)));
    let low = s.ior(s.shr(s.as_bits(a_low), 16), s.iand(s.as_bits(b_low), top));
    [s.as_float(s.ior(s.shr(a_high, 16), b_high)), s.as_float(low)]
}

/// Up to sixteen elements of a row from `d` on; what is missing is zero.
#[inline(always)]
fn load<E: Element>(s: Avx512, row: &[E], d: usize) -> F {
    load_element(s, &row[d.min(row.len())..row.len().min(d + 16)])
}

/// Queries, times the scale, as the first operand. Rows that are not there are zero.
#[inline(always)]
pub(super) fn cut_queries(s: Avx512, group: &Group<'_, u16>, area: &mut Area<'_>) {
    let steps = group.dim.div_ceil(COLUMNS);
    let scale = s.splat(group.scale * LOG2_E);
    for row in 0..area.queries.len() / steps * HEIGHT {
        let query = if row < group.rows() { group.query(row) } else { &[] };
        for step in 0..steps {
            let (a, b) = (load(s, query, COLUMNS * step), load(s, query, COLUMNS * step + 16));
            let [high, low] = cut(s, s.mul(a, scale), s.mul(b, scale));
            let halves = &mut area.queries[row / HEIGHT * steps + step];
            s.store(high, &mut halves[0][row % HEIGHT]);
            s.store(low, &mut halves[1][row % HEIGHT]);
        }
    }
}

/// Keys `first..end`, turned, as the second operand. Columns that are not there are those of the last key.
#[inline(always)]
pub(super) fn cut_keys(s: Avx512, keys: Rows<'_, u16>, dim: usize, first: usize, end: usize, area: &mut Area<'_>) {
    let steps = dim.div_ceil(COLUMNS);
    let ahead = BLOCK * keys.stride * size_of::<u16>();
    for tile in 0..2 * (end - first).div_ceil(COLUMNS) {
        for step in 0..steps {
            let (mut high, mut low) = ([s.splat(0.0); 16], [s.splat(0.0); 16]);
            for n in 0..16 {
                let position = (first + tile * 16 + n).min(end - 1);
                let key = &keys.data[position * keys.stride..][..dim];
                s.prefetch(key, ahead + COLUMNS * step * size_of::<u16>());
                [high[n], low[n]] = cut(s, load(s, key, COLUMNS * step), load(s, key, COLUMNS * step + 16));
            }
            let (high, low) = (s.transpose(high), s.transpose(low));
            let halves = &mut area.keys[tile * steps + step];
            for i in 0..16 {
                s.store(high[i], &mut halves[0][i]);
                s.store(low[i], &mut halves[1][i]);
            }
        }
    }
}

/// Values `first..end` as the second operand. Rows that are not there are zero.
#[inline(always)]
pub(super) fn cut_values(s: Avx512, values: Rows<'_, u16>, dim: usize, first: usize, end: usize, area: &mut Area<'_>) {
    let ahead = BLOCK * values.stride * size_of::<u16>();
    for step in 0..(end - first).div_ceil(COLUMNS) {
        for i in 0..16 {
            let mut rows = [&[][..]; 2];
            for (row, position) in rows.iter_mut().zip([first + COLUMNS * step + i, first + COLUMNS * step + 16 + i]) {
                if position < end {
                    *row = &values.data[position * values.stride..][..dim];
                    (0..dim * size_of::<u16>()).step_by(64).for_each(|line| s.prefetch(row, ahead + line));
                }
            }
            for (tile, values) in area.values.chunks_exact_mut(BLOCK / COLUMNS).enumerate() {
                let [high, low] = cut(s, load(s, rows[0], 16 * tile), load(s, rows[1], 16 * tile));
                s.store(high, &mut values[step][0][i]);
                s.store(low, &mut values[step][1][i]);
            }
        }
    }
}
