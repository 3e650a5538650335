//! `int4`: four-bit integers with a half float scale for each 32 columns, and `int4-asymmetric`, which has an offset as well.
//!
//! The matrices of the vocabulary get eight bits for each row: their errors reach the logits directly.
//!
//! A block is tried with several scales. Each is then moved to where the squared error is least for the integers that it
//! gave, and the best of them is taken.

use std::io;

use anemone_mil::types::DType;
use half::f16;

use super::blocks::{Blocks, Encode, FindGrid, Grid, Row};
use super::{Form, Promise, Scheme, Text, check_finite, int8, of_vocabulary};
use crate::source::Tensor;

pub(super) const SCHEME: Scheme = Scheme {
    name: "int4",
    about: "4-bit integers in blocks of 32, a scale for each",
    text: Text::Useful,
    choose: |t| fit(t, [&SYMMETRIC, &SYMMETRIC_16]),
};

pub(super) const ASYMMETRIC_SCHEME: Scheme = Scheme {
    name: "int4-asymmetric",
    about: "4-bit integers in blocks of 32, a scale and an offset for each",
    text: Text::Useful,
    choose: |t| fit(t, [&ASYMMETRIC, &ASYMMETRIC_16]),
};

/// The widest block that divides the rows; eight bits for rows that none divides, and for the vocabulary.
fn fit(tensor: &Tensor, all: [&'static Blocks; 2]) -> Form {
    if of_vocabulary(tensor) {
        return Form::Blocks(&int8::ROWS);
    }
    let divides = |b: &&&'static Blocks| b.block.is_some_and(|n| tensor.row_len().is_multiple_of(n));
    Form::Blocks(all.iter().find(divides).copied().unwrap_or(&int8::ROWS))
}

/// A weight that is cut off to have the others nearer may be this far off: a quarter of the largest.
const WITHIN: Promise = Promise::Within(0.25);

static SYMMETRIC: Blocks = Blocks {
    name: "4-bit integers in blocks of 32",
    dtype: DType::I4,
    block: Some(32),
    offset: None,
    on_engine: None,
    promise: WITHIN,
    encode: Encode::Grids(symmetric),
};
static SYMMETRIC_16: Blocks = Blocks { name: "4-bit integers in blocks of 16", block: Some(16), ..SYMMETRIC };
static ASYMMETRIC: Blocks = Blocks {
    name: "4-bit integers with offsets in blocks of 32",
    dtype: DType::U4,
    offset: Some(DType::U4),
    encode: Encode::Grids(asymmetric),
    ..SYMMETRIC
};
static ASYMMETRIC_16: Blocks =
    Blocks { name: "4-bit integers with offsets in blocks of 16", block: Some(16), ..ASYMMETRIC };

/// Encodes each block of a row on the grid that `find` gives.
pub(super) fn each(row: &mut Row<'_>, find: FindGrid) -> io::Result<()> {
    row.decode();
    check_finite(row.tensor.name(), row.values)?;
    let block = row.values.len() / row.scales.len().max(1);
    let alike = [1.0; 32];
    let places = row.scales.iter_mut().zip(&mut *row.offsets);
    for ((values, q), (scale, offset)) in row.values.chunks(block).zip(row.q.chunks_mut(block)).zip(places) {
        let grid = find(values, &alike[..values.len()]);
        if !grid.scale.is_finite() {
            return Err(super::unrepresentable(row.tensor.name(), largest(values)));
        }
        (*scale, *offset) = (grid.scale, f16::from_f32(grid.offset));
        write(values, q, &grid);
    }
    Ok(())
}

/// The element of the largest magnitude.
fn largest(values: &[f32]) -> f32 {
    values.iter().fold(0f32, |m, &v| if v.abs() > m.abs() { v } else { m })
}

/// Scales below this are as good as none.
const TINY: f32 = 1e-30;

/// What the largest element is divided by to give a scale.
const DIVISORS: [f32; 10] = [-9.0, -8.5, -8.0, -7.6, -7.2, -6.8, 7.8, 7.4, 7.0, 6.6];

/// The best grid for a block whose weights count so much each.
fn symmetric(values: &[f32], counts: &[f32]) -> Grid {
    let top = largest(values);
    let mut best = (f32::INFINITY, Grid::none(0.0, (-8.0, 7.0)));
    for divisor in DIVISORS {
        best = nearer(best, values, counts, top / divisor, 0.0, (-8.0, 7.0));
    }
    best.1
}

/// The better of `best` and the grid that `first` leads to.
fn nearer(
    best: (f32, Grid),
    values: &[f32],
    counts: &[f32],
    first: f32,
    offset: f32,
    range: (f32, f32),
) -> (f32, Grid) {
    if first.abs() < TINY {
        return best;
    }
    let scale = refined(values, counts, first, range);
    let error = error(values, counts, scale.to_f32(), first, range);
    if error < best.0 { (error, Grid { scale, first, offset, range }) } else { best }
}

/// By how much the range of a block is shrunk to give a scale.
const SHRINKS: [f32; 5] = [1.0, 0.95, 0.9, 0.85, 0.8];

fn asymmetric(values: &[f32], counts: &[f32]) -> Grid {
    let low = values.iter().fold(0f32, |m, &v| m.min(v));
    let high = values.iter().fold(0f32, |m, &v| m.max(v));
    let mut best = (f32::INFINITY, Grid::none(0.0, (0.0, 15.0)));
    for shrink in SHRINKS {
        let first = (high - low) * shrink / 15.0;
        let offset = if first.abs() < TINY { 0.0 } else { nearest(-low * shrink / first).clamp(0.0, 15.0) };
        best = nearer(best, values, counts, first, offset, (-offset, 15.0 - offset));
    }
    best.1
}

/// The nearest whole number, ties to even, of what is small: by an addition that leaves no room for fractions.
fn nearest(v: f32) -> f32 {
    const ROOM: f32 = 12_582_912.0;
    (v + ROOM) - ROOM
}

/// The integer that a scale gives a weight, less its offset.
fn level(v: f32, inverse: f32, (low, high): (f32, f32)) -> f32 {
    nearest((v * inverse).clamp(low, high))
}

/// The scale for which the integers that `first` gives are nearest to the weights.
fn refined(values: &[f32], counts: &[f32], first: f32, range: (f32, f32)) -> f16 {
    let inverse = 1.0 / first;
    let (mut xq, mut qq) = (0.0, 0.0);
    for (&v, count) in values.iter().zip(counts) {
        let q = level(v, inverse, range);
        xq += count * v * q;
        qq += count * q * q;
    }
    let scale = f16::from_f32(if qq > 0.0 { xq / qq } else { first });
    if scale == f16::ZERO { f16::MIN_POSITIVE_SUBNORMAL } else { scale }
}

fn error(values: &[f32], counts: &[f32], scale: f32, first: f32, range: (f32, f32)) -> f32 {
    let inverse = 1.0 / first;
    let off = |v: f32| v - scale * level(v, inverse, range);
    values.iter().zip(counts).fold(0.0, |sum, (&v, count)| sum + count * off(v) * off(v))
}

fn write(values: &[f32], q: &mut [u8], grid: &Grid) {
    let inverse = if grid.first == 0.0 { 0.0 } else { 1.0 / grid.first };
    for (&v, q) in values.iter().zip(q) {
        *q = (level(v, inverse, grid.range) + grid.offset) as i8 as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(seed: u32, n: usize) -> Vec<f32> {
        let mut x = seed.wrapping_mul(2_654_435_769) | 1;
        let mut one = || {
            x ^= x << 13;
            x ^= x >> 17;
            x ^= x << 5;
            x as f32 / u32::MAX as f32 - 0.5
        };
        // About normal.
        (0..n).map(|_| (0..4).map(|_| one()).sum()).collect()
    }

    fn decoded(values: &[f32], find: fn(&[f32], &[f32]) -> Grid, signed: bool) -> Vec<f32> {
        let mut q = vec![0; values.len()];
        let grid = find(values, &vec![1.0; values.len()]);
        write(values, &mut q, &grid);
        let (scale, offset) = (grid.scale, f16::from_f32(grid.offset));
        let whole = |q: u8| if signed { f32::from(q as i8) } else { f32::from(q) };
        for &q in &q {
            let range = if signed { -8.0..=7.0 } else { 0.0..=15.0 };
            assert!(range.contains(&whole(q)));
        }
        q.iter().map(|&q| scale.to_f32() * (whole(q) - offset.to_f32())).collect()
    }

    fn squares(a: &[f32], b: &[f32]) -> f32 {
        a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
    }

    #[test]
    fn nearer_than_the_scale_that_just_fits() {
        let (mut plain, mut searched, mut offset) = (0.0, 0.0, 0.0);
        for seed in 1..200 {
            let x = noise(seed, 32);
            let d = f16::from_f32(largest(&x) / -8.0).to_f32();
            let fits: Vec<f32> = x.iter().map(|v| d * (v / d).round().clamp(-8.0, 7.0)).collect();
            plain += squares(&x, &fits);
            searched += squares(&x, &decoded(&x, symmetric, true));
            offset += squares(&x, &decoded(&x, asymmetric, false));
        }
        assert!(searched < 0.9 * plain, "{searched} against {plain}");
        assert!(offset < 0.95 * plain, "{offset} against {plain}");
    }

    #[test]
    fn zeros_tiny_and_lone_weights() {
        for (encode, signed) in [(symmetric as fn(&[f32], &[f32]) -> _, true), (asymmetric, false)] {
            assert_eq!(decoded(&[0.0; 32], encode, signed), [0.0; 32]);
            assert!(decoded(&[1e-9; 32], encode, signed).iter().all(|v| v.abs() < 1e-6));
            for lone in [3.0, -3.0] {
                let mut x = [0.0; 32];
                x[5] = lone;
                let y = decoded(&x, encode, signed);
                assert!((y[5] - lone).abs() < 0.002 && y[0] == 0.0, "{y:?}");
            }
        }
    }
}
