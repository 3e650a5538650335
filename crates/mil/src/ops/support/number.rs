//! Arithmetic that floating and integer operations share; integers wrap.

/// An element that can be summed and multiplied.
pub trait Number: Copy + PartialOrd {
    /// The neutral element of addition.
    const ZERO: Self;
    /// The sum.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// The product.
    #[must_use]
    fn times(self, other: Self) -> Self;
}

impl Number for f32 {
    const ZERO: Self = 0.0;

    fn plus(self, other: Self) -> Self {
        self + other
    }

    fn times(self, other: Self) -> Self {
        self * other
    }
}

impl Number for i32 {
    const ZERO: Self = 0;

    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }

    fn times(self, other: Self) -> Self {
        self.wrapping_mul(other)
    }
}

/// The dot product of two slices of one length, in eight partial sums.
pub fn dot<T: Number>(a: &[T], b: &[T]) -> T {
    let mut sums = [T::ZERO; 8];
    let (a8, b8) = (a.chunks_exact(8), b.chunks_exact(8));
    let tail = a8.remainder().iter().zip(b8.remainder()).fold(T::ZERO, |s, (&a, &b)| s.plus(a.times(b)));
    for (a, b) in a8.zip(b8) {
        for ((s, &a), &b) in sums.iter_mut().zip(a).zip(b) {
            *s = s.plus(a.times(b));
        }
    }
    sums.into_iter().fold(tail, T::plus)
}

/// Adds `factor` times `a` to `sums`.
pub fn add_scaled<T: Number>(sums: &mut [T], factor: T, a: &[T]) {
    for (s, &a) in sums.iter_mut().zip(a) {
        *s = s.plus(factor.times(a));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dot_product_takes_every_element() {
        for n in 0..40 {
            let a: Vec<i32> = (1..=n).collect();
            assert_eq!(dot(&a, &a), n * (n + 1) * (2 * n + 1) / 6);
        }
        assert_eq!(dot(&[i32::MAX], &[2]), -2);
    }
}
