//! Rotary position embedding: pairs of coordinates turned by the angle of their position.
//!
//! Products and sums are rounded one by one, as a graph of `mul`, `add` and `sub` would.

use crate::isa::{Isa, Kernel};
use crate::lanes::{Lanes, load_part, store_part};

/// Turns each row of `dim` values (the heads of one position): coordinate `i` with `i + half`, where `half` is the length
/// of the tables; what lies past `2 · half` stays.
///
/// `low = low · cos[0] − high · sin[0]` and `high = high · cos[1] + low · sin[1]`: tables for the two halves, which most
/// models have alike (then pass the same slice twice).
pub fn rope_half(isa: Isa, x: &mut [f32], dim: usize, cos: [&[f32]; 2], sin: [&[f32]; 2]) {
    let half = cos[0].len();
    assert!(dim > 0 && x.len().is_multiple_of(dim), "rope: {} values are not rows of {dim}", x.len());
    assert!(2 * half <= dim, "rope: tables of {half} for rows of {dim}");
    assert!([cos[1], sin[0], sin[1]].iter().all(|t| t.len() == half), "rope: the tables differ in length");
    isa.run(Half { x, dim, cos, sin });
}

/// Turns each row of `dim` values: coordinate `2i` with `2i + 1`; what lies past twice the length of the tables stays.
pub fn rope_interleaved(x: &mut [f32], dim: usize, cos: &[f32], sin: &[f32]) {
    assert!(dim > 0 && x.len().is_multiple_of(dim), "rope: {} values are not rows of {dim}", x.len());
    assert!(2 * cos.len() <= dim && cos.len() == sin.len(), "rope: tables of {} and {}", cos.len(), sin.len());
    for row in x.chunks_exact_mut(dim) {
        for (pair, (cos, sin)) in row.as_chunks_mut::<2>().0.iter_mut().zip(cos.iter().zip(sin)) {
            let [a, b] = *pair;
            *pair = [a * cos - b * sin, b * cos + a * sin];
        }
    }
}

struct Half<'a> {
    x: &'a mut [f32],
    dim: usize,
    cos: [&'a [f32]; 2],
    sin: [&'a [f32]; 2],
}

impl Kernel for Half<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Lanes>(self, s: S) {
        let half = self.cos[0].len();
        for row in self.x.chunks_exact_mut(self.dim) {
            let (low, high) = row[..2 * half].split_at_mut(half);
            for (i, (low, high)) in low.chunks_mut(16).zip(high.chunks_mut(16)).enumerate() {
                let (a, b) = (load_part(s, low, 0.0), load_part(s, high, 0.0));
                let (cos, sin) = (part(s, self.cos[0], i), part(s, self.sin[0], i));
                store_part(s, s.sub(s.mul(a, cos), s.mul(b, sin)), low);
                let (cos, sin) = (part(s, self.cos[1], i), part(s, self.sin[1], i));
                store_part(s, s.add(s.mul(b, cos), s.mul(a, sin)), high);
            }
        }
    }
}

#[inline(always)]
fn part<S: Lanes>(s: S, table: &[f32], i: usize) -> S::F {
    load_part(s, &table[16 * i..], 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_turn_by_the_angle() {
        for (dim, half) in [(2, 1), (64, 32), (80, 40), (40, 10), (96, 17)] {
            let angles: Vec<f32> = (0..half).map(|i| i as f32 * 0.3 + 0.1).collect();
            let cos: Vec<f32> = angles.iter().map(|a| a.cos()).collect();
            let sin: Vec<f32> = angles.iter().map(|a| a.sin()).collect();
            let x: Vec<f32> = (0..3 * dim).map(|i| (i as f32 * 0.7).sin()).collect();
            let mut turned = x.clone();
            rope_interleaved(&mut turned, dim, &cos, &sin);
            for isa in Isa::available() {
                let mut out = x.clone();
                rope_half(isa, &mut out, dim, [&cos, &cos], [&sin, &sin]);
                for r in 0..3 {
                    let (x, out, turned) = (&x[r * dim..], &out[r * dim..], &turned[r * dim..]);
                    for i in 0..half {
                        let (a, b) = (x[i], x[i + half]);
                        assert_eq!(out[i], a * cos[i] - b * sin[i]);
                        assert_eq!(out[i + half], b * cos[i] + a * sin[i]);
                        let (a, b) = (x[2 * i], x[2 * i + 1]);
                        assert_eq!(turned[2 * i], a * cos[i] - b * sin[i]);
                        assert_eq!(turned[2 * i + 1], b * cos[i] + a * sin[i]);
                    }
                    assert_eq!(out[2 * half..dim], x[2 * half..dim]);
                    assert_eq!(turned[2 * half..dim], x[2 * half..dim]);
                }
            }
        }
    }
}
