//! Sums and extremes over a slice, in one fixed order.
//!
//! Sums: element `i` goes to lane `i % 64` (four vectors side by side, the last ones filled up with zeros); the lanes are
//! added as a tree, vector 0 with 1, 2 with 3, then both, then lane `i` with `i + 8`, 4, 2, 1.

use crate::isa::{Isa, Kernel};
use crate::lanes::{Lanes, load_part};

/// `Σ x`, 0 for an empty slice.
pub fn sum(isa: Isa, x: &[f32]) -> f32 {
    struct Run<'a>(&'a [f32]);
    impl Kernel for Run<'_> {
        type Out = f32;
        #[inline(always)]
        fn run<S: Lanes>(self, s: S) -> f32 {
            sum_lanes(s, self.0)
        }
    }
    isa.run(Run(x))
}

/// `Σ x²`, 0 for an empty slice.
pub fn sum_squares(isa: Isa, x: &[f32]) -> f32 {
    struct Run<'a>(&'a [f32]);
    impl Kernel for Run<'_> {
        type Out = f32;
        #[inline(always)]
        fn run<S: Lanes>(self, s: S) -> f32 {
            sum_squares_lanes(s, self.0, s.splat(0.0))
        }
    }
    isa.run(Run(x))
}

/// The largest value; NaNs are passed over. -infinity for an empty slice.
pub fn max(isa: Isa, x: &[f32]) -> f32 {
    struct Run<'a>(&'a [f32]);
    impl Kernel for Run<'_> {
        type Out = f32;
        #[inline(always)]
        fn run<S: Lanes>(self, s: S) -> f32 {
            max_lanes(s, self.0)
        }
    }
    isa.run(Run(x))
}

/// Where the largest value stands, the first of equals; NaNs are passed over. `None` for an empty slice, or one of NaNs.
pub fn argmax(isa: Isa, x: &[f32]) -> Option<usize> {
    let largest = max(isa, x);
    x.iter().position(|&v| v == largest)
}

#[inline(always)]
pub(crate) fn sum_lanes<S: Lanes>(s: S, x: &[f32]) -> f32 {
    let mut acc = [s.splat(0.0); 4];
    for block in x.chunks(64) {
        for (acc, part) in acc.iter_mut().zip(block.chunks(16)) {
            *acc = s.add(*acc, load_part(s, part, 0.0));
        }
    }
    s.sum(s.add(s.add(acc[0], acc[1]), s.add(acc[2], acc[3])))
}

/// `Σ (x − centre)²`.
#[inline(always)]
pub(crate) fn sum_squares_lanes<S: Lanes>(s: S, x: &[f32], centre: S::F) -> f32 {
    let mut fill = [0.0; 16];
    s.store(centre, &mut fill);
    let mut acc = [s.splat(0.0); 4];
    for block in x.chunks(64) {
        for (acc, part) in acc.iter_mut().zip(block.chunks(16)) {
            let v = s.sub(load_part(s, part, fill[0]), centre);
            *acc = s.fma(v, v, *acc);
        }
    }
    s.sum(s.add(s.add(acc[0], acc[1]), s.add(acc[2], acc[3])))
}

#[inline(always)]
pub(crate) fn max_lanes<S: Lanes>(s: S, x: &[f32]) -> f32 {
    let mut acc = [s.splat(f32::NEG_INFINITY); 4];
    for block in x.chunks(64) {
        for (acc, part) in acc.iter_mut().zip(block.chunks(16)) {
            *acc = s.max(load_part(s, part, f32::NEG_INFINITY), *acc);
        }
    }
    s.largest(s.max(s.max(acc[0], acc[1]), s.max(acc[2], acc[3])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_and_instruction_set() {
        let x: Vec<f32> = (0..400).map(|i| ((i * 7919) % 1000) as f32 * 0.013 - 6.0).collect();
        for length in 0..400 {
            let x = &x[..length];
            let exact: f64 = x.iter().map(|&v| f64::from(v)).sum();
            let squares: f64 = x.iter().map(|&v| f64::from(v) * f64::from(v)).sum();
            for isa in Isa::available() {
                let what = format!("{} {length}", isa.name());
                assert_eq!(sum(isa, x).to_bits(), sum(Isa::Scalar, x).to_bits(), "{what}");
                assert!((f64::from(sum(isa, x)) - exact).abs() < 1e-3, "{what}");
                assert_eq!(sum_squares(isa, x).to_bits(), sum_squares(Isa::Scalar, x).to_bits(), "{what}");
                assert!((f64::from(sum_squares(isa, x)) - squares).abs() <= squares * 1e-5, "{what}");
                assert_eq!(max(isa, x), x.iter().copied().fold(f32::NEG_INFINITY, f32::max), "{what}");
                let first = (0..length).find(|&i| x.iter().all(|&v| v <= x[i]));
                assert_eq!(argmax(isa, x), first, "{what}");
            }
        }
    }

    #[test]
    fn nan_is_passed_over() {
        for isa in Isa::available() {
            assert_eq!(argmax(isa, &[f32::NAN, 1.0, f32::NAN, 3.0, 3.0]), Some(3));
            assert_eq!(argmax(isa, &[f32::NAN; 20]), None);
            assert_eq!(argmax(isa, &[f32::NEG_INFINITY; 20]), Some(0));
            assert!(sum(isa, &[1.0, f32::NAN]).is_nan());
        }
    }
}
