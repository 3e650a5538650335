//! RMS norm and layer norm over rows, sums in the order of [`crate::reduce`].
//!
//! Each row is read two (RMS) or three (layer norm) times, from the cache after the first, and written once.

use crate::isa::{Isa, Kernel};
use crate::lanes::{Lanes, load_part, store_part};
use crate::reduce::{sum_lanes, sum_squares_lanes};

/// `out = x / √(mean(x²) + epsilon) · weight` over rows as long as `weight`.
pub fn rms_norm(isa: Isa, x: &[f32], weight: &[f32], epsilon: f32, out: &mut [f32]) {
    check("rms_norm", x.len(), weight.len(), out.len());
    isa.run(RmsNorm { x, weight, epsilon, out });
}

/// `out = (x − mean(x)) / √(variance(x) + epsilon) · weight + bias` over rows as long as `weight` and `bias`; the variance
/// is the mean of the squared distances from the mean.
pub fn layer_norm(isa: Isa, x: &[f32], weight: &[f32], bias: &[f32], epsilon: f32, out: &mut [f32]) {
    check("layer_norm", x.len(), weight.len(), out.len());
    assert_eq!(weight.len(), bias.len(), "layer_norm: weight and bias differ in length");
    isa.run(LayerNorm { x, weight, bias, epsilon, out });
}

fn check(what: &str, x: usize, width: usize, out: usize) {
    assert!(width > 0 && x.is_multiple_of(width), "{what}: {x} values are not rows of {width}");
    assert_eq!(x, out, "{what}: input and output differ in length");
}

struct RmsNorm<'a> {
    x: &'a [f32],
    weight: &'a [f32],
    epsilon: f32,
    out: &'a mut [f32],
}

impl Kernel for RmsNorm<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Lanes>(self, s: S) {
        let width = self.weight.len();
        for (x, out) in self.x.chunks_exact(width).zip(self.out.chunks_exact_mut(width)) {
            let mean = sum_squares_lanes(s, x, s.splat(0.0)) / width as f32;
            let factor = s.splat(1.0 / (mean + self.epsilon).sqrt());
            for ((x, weight), out) in x.chunks(16).zip(self.weight.chunks(16)).zip(out.chunks_mut(16)) {
                let scaled = s.mul(load_part(s, x, 0.0), factor);
                store_part(s, s.mul(scaled, load_part(s, weight, 0.0)), out);
            }
        }
    }
}

struct LayerNorm<'a> {
    x: &'a [f32],
    weight: &'a [f32],
    bias: &'a [f32],
    epsilon: f32,
    out: &'a mut [f32],
}

impl Kernel for LayerNorm<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Lanes>(self, s: S) {
        let width = self.weight.len();
        for (x, out) in self.x.chunks_exact(width).zip(self.out.chunks_exact_mut(width)) {
            let mean = s.splat(sum_lanes(s, x) / width as f32);
            let variance = sum_squares_lanes(s, x, mean) / width as f32;
            let factor = s.splat(1.0 / (variance + self.epsilon).sqrt());
            let affine = self.weight.chunks(16).zip(self.bias.chunks(16));
            for ((x, (weight, bias)), out) in x.chunks(16).zip(affine).zip(out.chunks_mut(16)) {
                let scaled = s.mul(s.sub(load_part(s, x, 0.0), mean), factor);
                store_part(s, s.fma(scaled, load_part(s, weight, 0.0), load_part(s, bias, 0.0)), out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agree_with_the_formulas() {
        for width in [1, 2, 15, 16, 17, 64, 65, 576, 577] {
            let x: Vec<f32> = (0..3 * width).map(|i| ((i * 7919) % 1000) as f32 * 0.02 - 9.0).collect();
            let weight: Vec<f32> = (0..width).map(|i| 0.5 + (i % 7) as f32 * 0.1).collect();
            let bias: Vec<f32> = (0..width).map(|i| (i % 5) as f32 * 0.3).collect();
            let mut bits: Option<Vec<f32>> = None;
            for isa in Isa::available() {
                let (mut rms, mut layer) = (vec![0.0; x.len()], vec![0.0; x.len()]);
                rms_norm(isa, &x, &weight, 1e-5, &mut rms);
                layer_norm(isa, &x, &weight, &bias, 1e-5, &mut layer);
                for (r, row) in x.chunks(width).enumerate() {
                    let row: Vec<f64> = row.iter().map(|&v| f64::from(v)).collect();
                    let mean = row.iter().sum::<f64>() / width as f64;
                    let square = row.iter().map(|v| v * v).sum::<f64>() / width as f64;
                    let variance = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / width as f64;
                    for (i, v) in row.iter().enumerate() {
                        let (w, b) = (f64::from(weight[i]), f64::from(bias[i]));
                        let want = v / (square + 1e-5).sqrt() * w;
                        assert!((f64::from(rms[r * width + i]) - want).abs() < 2e-6 * (1.0 + want.abs()));
                        let want = (v - mean) / (variance + 1e-5).sqrt() * w + b;
                        assert!((f64::from(layer[r * width + i]) - want).abs() < 1e-5 * (1.0 + want.abs()));
                    }
                }
                rms.extend(layer);
                assert_eq!(bits.get_or_insert_with(|| rms.clone()), &rms, "{} {width}", isa.name());
            }
        }
    }

    #[test]
    fn nan_stays_in_its_row() {
        let mut x = vec![1.0; 60];
        x[25] = f32::NAN;
        for isa in Isa::available() {
            let mut out = vec![0.0; 60];
            rms_norm(isa, &x, &[1.0; 20], 0.0, &mut out);
            assert!(out[..20].iter().chain(&out[40..]).all(|&v| v == 1.0));
            assert!(out[20..40].iter().all(|v| v.is_nan()));
        }
    }
}
