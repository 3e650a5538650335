//! Softmax over rows.
//!
//! Each row is read three times and written twice, from the cache; the exponential (about 15 vector instructions per
//! sixteen values) is the limit.

use crate::isa::{Isa, Kernel};
use crate::lanes::{Lanes, load_part, store_part};
use crate::math::exp;
use crate::reduce::{max_lanes, sum_lanes};

/// `x = e^(x − max) / Σ e^(x − max)` over each row of `width` values. A row with NaN, with +infinity, or of nothing but
/// -infinity becomes NaN, as the formula says.
pub fn softmax(isa: Isa, x: &mut [f32], width: usize) {
    assert!(width > 0 && x.len().is_multiple_of(width), "softmax: {} values are not rows of {width}", x.len());
    isa.run(Softmax { x, width });
}

struct Softmax<'a> {
    x: &'a mut [f32],
    width: usize,
}

impl Kernel for Softmax<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Lanes>(self, s: S) {
        for row in self.x.chunks_exact_mut(self.width) {
            let max = s.splat(max_lanes(s, row));
            for part in row.chunks_mut(16) {
                let x = load_part(s, part, f32::NEG_INFINITY);
                store_part(s, exp(s, s.sub(x, max)), part);
            }
            let sum = s.splat(sum_lanes(s, row));
            for part in row.chunks_mut(16) {
                store_part(s, s.div(load_part(s, part, 0.0), sum), part);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_formula_for_every_width() {
        for width in (1..70).chain([255, 1000]) {
            let x: Vec<f32> = (0..3 * width).map(|i| ((i * 7919) % 1000) as f32 * 0.02 - 10.0).collect();
            let mut bits: Option<Vec<f32>> = None;
            for isa in Isa::available() {
                let mut out = x.clone();
                softmax(isa, &mut out, width);
                for (row, out) in x.chunks(width).zip(out.chunks(width)) {
                    let top = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                    let sum: f64 = row.iter().map(|&v| f64::from(v - top).exp()).sum();
                    for (&v, &got) in row.iter().zip(out) {
                        let want = f64::from(v - top).exp() / sum;
                        assert!((f64::from(got) - want).abs() <= 1e-6 * want + 1e-12, "{} {width}", isa.name());
                    }
                }
                assert_eq!(bits.get_or_insert_with(|| out.clone()), &out, "{} {width}", isa.name());
            }
        }
    }

    #[test]
    fn hostile_rows_stay_by_themselves() {
        let inf = f32::INFINITY;
        let mut rows = vec![0.0; 5 * 20];
        rows[3] = f32::NAN;
        rows[20..40].fill(-inf);
        rows[45] = inf;
        rows[60..79].fill(-inf);
        for isa in Isa::available() {
            let mut out = rows.clone();
            softmax(isa, &mut out, 20);
            assert!(out[..20].iter().all(|v| v.is_nan()));
            assert!(out[20..40].iter().all(|v| v.is_nan()));
            assert!(out[45].is_nan());
            assert!(out[60..79].iter().all(|&v| v == 0.0) && out[79] == 1.0);
            assert!(out[80..].iter().all(|&v| (v - 0.05).abs() < 1e-7));
        }
    }
}
