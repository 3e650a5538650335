//! Transcendental functions on lanes. All are built from the exact operations of [`Lanes`], so their bits are the same on
//! every instruction set. The polynomials are minimax fits, made for the ranges that the reductions leave.

use crate::lanes::Lanes;

const LOG2_E: f32 = std::f32::consts::LOG2_E;
/// ln 2 in two parts; products of the first with the exponents that occur are exact.
const LN2_HIGH: f32 = 0.693_359_4;
const LN2_LOW: f32 = -2.121_944_4e-4;

/// `a` cut into `n · ln 2 + r`; gives `n` and `e^r − 1`.
#[inline(always)]
fn reduced<S: Lanes>(s: S, a: S::F) -> (S::F, S::F) {
    let n = s.round(s.mul(a, s.splat(LOG2_E)));
    let r = s.fma(n, s.splat(-LN2_LOW), s.fma(n, s.splat(-LN2_HIGH), a));
    let mut q = s.splat(0.001_381_352_2);
    for c in [0.008_369_348, 0.041_668_44, 0.166_665_16, 0.499_999_93] {
        q = s.fma(q, r, s.splat(c));
    }
    (n, s.fma(s.mul(r, r), q, r))
}

/// `e^a`. At most 1 ulp off; overflow gives infinity, underflow passes through the denormals to 0.
#[inline(always)]
pub(crate) fn exp<S: Lanes>(s: S, a: S::F) -> S::F {
    let a = s.min(s.splat(89.0), s.max(s.splat(-104.0), a));
    let (n, t) = reduced(s, a);
    // Less than 2^-150 rounds to 0, for which some processors take hundreds of cycles: masked scores come here.
    let (least, zero) = (s.splat(-103.98), s.splat(0.0));
    let n = s.select_gt(least, a, zero, n);
    s.select_gt(least, a, zero, s.scale2(s.add(s.splat(1.0), t), n))
}

/// `1 / (1 + e^-a)`. At most 3 ulp off, also where it is tiny.
#[inline(always)]
pub(crate) fn sigmoid<S: Lanes>(s: S, a: S::F) -> S::F {
    let e = exp(s, s.neg(s.abs(a)));
    let top = s.select_gt(s.splat(0.0), a, e, s.splat(1.0));
    s.div(top, s.add(s.splat(1.0), e))
}

/// At most 3 ulp off.
#[inline(always)]
pub(crate) fn tanh<S: Lanes>(s: S, a: S::F) -> S::F {
    // tanh |a| = m / (m + 2), with m = e^2|a| − 1 without cancellation.
    let twice = s.min(s.splat(20.0), s.mul(s.splat(2.0), s.abs(a)));
    let (n, t) = reduced(s, twice);
    let power = s.scale2(s.splat(1.0), n);
    let m = s.fma(power, t, s.sub(power, s.splat(1.0)));
    s.copysign(s.div(m, s.add(m, s.splat(2.0))), a)
}

/// At most 2 ulp off.
#[inline(always)]
pub(crate) fn erf<S: Lanes>(s: S, a: S::F) -> S::F {
    let x = s.min(s.splat(4.0), s.abs(a));
    let y = s.mul(x, x);
    let mut small = s.splat(7.853_84e-5);
    for c in [-0.000_801_018_7, 0.005_188_327, -0.026_853_811, 0.112_835_85, -0.376_126_26, 0.128_379_17] {
        small = s.fma(small, y, s.splat(c));
    }
    // x outside of the polynomial: 2/√π − 1 is rounded eight times finer than 2/√π.
    let small = s.fma(small, x, x);
    // 1 − erf x = e^-p(x) from 1 on.
    let mut p = s.splat(-0.000_154_233_35);
    for c in [0.002_639_019_2, -0.020_630_93, 0.100_642_73, 0.640_916_05, 1.125_459_2, 0.000_733_632] {
        p = s.fma(p, x, s.splat(c));
    }
    let large = s.sub(s.splat(1.0), exp(s, s.neg(p)));
    s.copysign(s.select_gt(x, s.splat(1.0), large, small), a)
}

/// `a · sigmoid(a)`. At most 4 ulp off.
#[inline(always)]
pub(crate) fn silu<S: Lanes>(s: S, a: S::F) -> S::F {
    s.mul(a, sigmoid(s, a))
}

/// `a / 2 · (1 + erf(a / √2))`. At most `2^-22 · |a|` off.
#[inline(always)]
pub(crate) fn gelu<S: Lanes>(s: S, a: S::F) -> S::F {
    let e = erf(s, s.mul(a, s.splat(std::f32::consts::FRAC_1_SQRT_2)));
    s.mul(s.mul(a, s.splat(0.5)), s.add(s.splat(1.0), e))
}

/// `a / 2 · (1 + tanh(√(2/π) · (a + 0.044715 a³)))`. At most `2^-21 · |a|` off.
#[inline(always)]
pub(crate) fn gelu_tanh<S: Lanes>(s: S, a: S::F) -> S::F {
    let cubic = s.fma(s.mul(s.mul(a, a), s.splat(0.044_715)), a, a);
    let t = tanh(s, s.mul(cubic, s.splat(0.797_884_6)));
    s.mul(s.mul(a, s.splat(0.5)), s.add(s.splat(1.0), t))
}
