//! Element by element: arithmetic and activations.
//!
//! Roofline: memory bound outside the caches (8 bytes moved an element in place, 12 for two operands); the transcendental
//! functions take 15 to 30 vector instructions per sixteen elements, which bind inside them.

use crate::isa::{Isa, Kernel};
use crate::lanes::{Lanes, load_part, store_part};
use crate::math;

/// A function of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    /// `e^x`, at most 1 ulp off.
    Exp,
    /// `1 / (1 + e^-x)`, at most 3 ulp off.
    Sigmoid,
    /// `x / (1 + e^-x)`, at most 4 ulp off (below 1e-35: an absolute error below that).
    Silu,
    /// At most 3 ulp off.
    Tanh,
    /// At most 2 ulp off.
    Erf,
    /// `x/2 · (1 + erf(x/√2))`, at most `2^-22 · |x|` off.
    Gelu,
    /// The approximation of GELU by tanh, at most `2^-21 · |x|` off.
    GeluTanh,
    /// `x · sigmoid(1.702 x)`, at most 5 ulp off.
    GeluSigmoid,
    /// `max(x, 0)`; NaN gives NaN.
    Relu,
    /// Correctly rounded.
    Sqrt,
    /// `x · x`.
    Square,
    /// `|x|`.
    Abs,
    /// `-x`.
    Neg,
    /// `1 / x`.
    Reciprocal,
}

/// A function of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// `a · b`
    Mul,
    /// `a / b`
    Div,
    /// `a > b ? a : b`: the second operand when either is NaN.
    Max,
    /// `a < b ? a : b`: the second operand when either is NaN.
    Min,
    /// `silu(a) · b`: the gated MLP, `a` the gate.
    SiluMul,
    /// `gelu(a) · b`, with the tanh approximation.
    GeluTanhMul,
    /// `gelu(a) · b`.
    GeluMul,
}

/// `out[i] = op(x[i])`. The lengths are equal.
pub fn unary(isa: Isa, op: Unary, x: &[f32], out: &mut [f32]) {
    assert_eq!(x.len(), out.len(), "unary {op:?}: lengths differ");
    out.copy_from_slice(x);
    unary_in_place(isa, op, out);
}

/// `x[i] = op(x[i])`.
pub fn unary_in_place(isa: Isa, op: Unary, x: &mut [f32]) {
    macro_rules! choose {
        ($($name:ident: |$s:ident, $a:ident| $value:expr;)*) => {
            match op {
                $(Unary::$name => {
                    struct Run<'a>(&'a mut [f32]);
                    impl Kernel for Run<'_> {
                        type Out = ();
                        #[inline(always)]
                        fn run<S: Lanes>(self, $s: S) {
                            for part in self.0.chunks_mut(16) {
                                let $a = load_part($s, part, 0.0);
                                store_part($s, $value, part);
                            }
                        }
                    }
                    isa.run(Run(x));
                })*
            }
        };
    }
    choose! {
        Exp: |s, a| math::exp(s, a);
        Sigmoid: |s, a| math::sigmoid(s, a);
        Silu: |s, a| math::silu(s, a);
        Tanh: |s, a| math::tanh(s, a);
        Erf: |s, a| math::erf(s, a);
        Gelu: |s, a| math::gelu(s, a);
        GeluTanh: |s, a| math::gelu_tanh(s, a);
        GeluSigmoid: |s, a| s.mul(a, math::sigmoid(s, s.mul(a, s.splat(1.702))));
        Relu: |s, a| s.max(s.splat(0.0), a);
        Sqrt: |s, a| s.sqrt(a);
        Square: |s, a| s.mul(a, a);
        Abs: |s, a| s.abs(a);
        Neg: |s, a| s.neg(a);
        Reciprocal: |s, a| s.div(s.splat(1.0), a);
    }
}

/// `out[i] = op(a[i], b[i])`. The lengths are equal.
pub fn binary(isa: Isa, op: Binary, a: &[f32], b: &[f32], out: &mut [f32]) {
    assert_eq!(a.len(), out.len(), "binary {op:?}: lengths differ");
    out.copy_from_slice(a);
    binary_in_place(isa, op, out, b);
}

/// `a[i] = op(a[i], b[i])`. The lengths are equal.
pub fn binary_in_place(isa: Isa, op: Binary, a: &mut [f32], b: &[f32]) {
    assert_eq!(a.len(), b.len(), "binary {op:?}: lengths differ");
    macro_rules! choose {
        ($($name:ident: |$s:ident, $a:ident, $b:ident| $value:expr;)*) => {
            match op {
                $(Binary::$name => {
                    struct Run<'a>(&'a mut [f32], &'a [f32]);
                    impl Kernel for Run<'_> {
                        type Out = ();
                        #[inline(always)]
                        fn run<S: Lanes>(self, $s: S) {
                            for (a, b) in self.0.chunks_mut(16).zip(self.1.chunks(16)) {
                                let $b = load_part($s, b, 1.0);
                                let $a = load_part($s, a, 1.0);
                                store_part($s, $value, a);
                            }
                        }
                    }
                    isa.run(Run(a, b));
                })*
            }
        };
    }
    choose! {
        Add: |s, a, b| s.add(a, b);
        Sub: |s, a, b| s.sub(a, b);
        Mul: |s, a, b| s.mul(a, b);
        Div: |s, a, b| s.div(a, b);
        Max: |s, a, b| s.max(a, b);
        Min: |s, a, b| s.min(a, b);
        SiluMul: |s, a, b| s.mul(math::silu(s, a), b);
        GeluTanhMul: |s, a, b| s.mul(math::gelu_tanh(s, a), b);
        GeluMul: |s, a, b| s.mul(math::gelu(s, a), b);
    }
}

/// `x[i] = x[i] · scale + offset`, rounded once.
pub fn affine_in_place(isa: Isa, x: &mut [f32], scale: f32, offset: f32) {
    struct Run<'a>(&'a mut [f32], f32, f32);
    impl Kernel for Run<'_> {
        type Out = ();
        #[inline(always)]
        fn run<S: Lanes>(self, s: S) {
            for part in self.0.chunks_mut(16) {
                let x = load_part(s, part, 0.0);
                store_part(s, s.fma(x, s.splat(self.1), s.splat(self.2)), part);
            }
        }
    }
    isa.run(Run(x, scale, offset));
}

#[cfg(test)]
mod tests;
