//! The definition of every lane operation, in plain Rust.

use super::Lanes;
use half::f16;

/// Sixteen lanes as arrays: needs no proof. Its methods stay calls: unrolled sixteen times into every kernel they would
/// make the crate slow to build, for code that machines of this century do not run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scalar;

#[inline(always)]
fn map(a: [f32; 16], f: impl Fn(f32) -> f32) -> [f32; 16] {
    std::array::from_fn(|i| f(a[i]))
}

#[inline(always)]
fn zip<T: Copy, U>(a: [T; 16], b: [T; 16], f: impl Fn(T, T) -> U) -> [U; 16] {
    std::array::from_fn(|i| f(a[i], b[i]))
}

#[inline(always)]
fn four(p: &[u8; 64], i: usize) -> [u8; 4] {
    [p[4 * i], p[4 * i + 1], p[4 * i + 2], p[4 * i + 3]]
}

impl Lanes for Scalar {
    type F = [f32; 16];
    type I = [i32; 16];
    const TILE: usize = 1;
    const FAST_LOOKUP: bool = false;

    #[inline(never)]
    fn splat(self, v: f32) -> Self::F {
        [v; 16]
    }
    #[inline(never)]
    fn load(self, p: &[f32; 16]) -> Self::F {
        *p
    }
    #[inline(never)]
    fn store(self, v: Self::F, p: &mut [f32; 16]) {
        *p = v;
    }
    #[inline(never)]
    fn load_bytes(self, p: &[u8; 64]) -> Self::F {
        std::array::from_fn(|i| f32::from_le_bytes(four(p, i)))
    }
    #[inline(never)]
    fn load_f16(self, p: &[u16; 16]) -> Self::F {
        std::array::from_fn(|i| f16::from_bits(p[i]).to_f32_const())
    }
    #[inline(never)]
    fn load_f16_bytes(self, p: &[u8; 32]) -> Self::F {
        std::array::from_fn(|i| f16::from_le_bytes([p[2 * i], p[2 * i + 1]]).to_f32_const())
    }
    #[inline(never)]
    fn store_f16(self, v: Self::F, p: &mut [u16; 16]) {
        *p = std::array::from_fn(|i| f16::from_f32_const(v[i]).to_bits());
    }

    #[inline(never)]
    fn add(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |a, b| a + b)
    }
    #[inline(never)]
    fn sub(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |a, b| a - b)
    }
    #[inline(never)]
    fn mul(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |a, b| a * b)
    }
    #[inline(never)]
    fn div(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |a, b| a / b)
    }
    #[inline(never)]
    fn sqrt(self, a: Self::F) -> Self::F {
        map(a, f32::sqrt)
    }
    #[inline(never)]
    fn fma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        std::array::from_fn(|i| a[i].mul_add(b[i], c[i]))
    }
    #[inline(never)]
    fn max(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |a, b| if a > b { a } else { b })
    }
    #[inline(never)]
    fn min(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |a, b| if a < b { a } else { b })
    }
    #[inline(never)]
    fn round(self, a: Self::F) -> Self::F {
        map(a, f32::round_ties_even)
    }
    #[inline(never)]
    fn select_gt(self, a: Self::F, b: Self::F, x: Self::F, y: Self::F) -> Self::F {
        std::array::from_fn(|i| if a[i] > b[i] { x[i] } else { y[i] })
    }
    #[inline(never)]
    fn scale2(self, p: Self::F, n: Self::F) -> Self::F {
        // Two factors, so that neither leaves the normal range: the first product is exact, the second rounds.
        let power = |n: i32| f32::from_bits(((n + 127) << 23) as u32);
        zip(p, n, |p, n| {
            let n = n as i32;
            p * power(n >> 1) * power(n - (n >> 1))
        })
    }

    #[inline(never)]
    fn isplat(self, v: i32) -> Self::I {
        [v; 16]
    }
    #[inline(never)]
    fn iload(self, p: &[u8; 64]) -> Self::I {
        std::array::from_fn(|i| i32::from_le_bytes(four(p, i)))
    }
    #[inline(never)]
    fn iand(self, a: Self::I, b: Self::I) -> Self::I {
        zip(a, b, |a, b| a & b)
    }
    #[inline(never)]
    fn ior(self, a: Self::I, b: Self::I) -> Self::I {
        zip(a, b, |a, b| a | b)
    }
    #[inline(never)]
    fn shr(self, a: Self::I, n: u32) -> Self::I {
        std::array::from_fn(|i| ((a[i] as u32) >> n) as i32)
    }
    #[inline(never)]
    fn shl(self, a: Self::I, n: u32) -> Self::I {
        std::array::from_fn(|i| a[i] << n)
    }
    #[inline(never)]
    fn to_f32(self, a: Self::I) -> Self::F {
        std::array::from_fn(|i| a[i] as f32)
    }
    #[inline(never)]
    fn to_i32(self, a: Self::F) -> Self::I {
        std::array::from_fn(|i| a[i].round_ties_even() as i32)
    }
    #[inline(never)]
    fn as_bits(self, a: Self::F) -> Self::I {
        std::array::from_fn(|i| a[i].to_bits() as i32)
    }
    #[inline(never)]
    fn as_float(self, a: Self::I) -> Self::F {
        std::array::from_fn(|i| f32::from_bits(a[i] as u32))
    }

    #[inline(never)]
    fn store_bytes(self, v: Self::I, p: &mut [u8; 16]) {
        *p = std::array::from_fn(|i| v[i] as u8);
    }

    const UNSIGNED: bool = true;
    #[inline(never)]
    fn dot_nibbles(self, acc: Self::I, w: Self::I, a: Self::I) -> Self::I {
        self.dot_bytes(acc, w, a)
    }
    #[inline(never)]
    fn dot_bytes(self, acc: Self::I, w: Self::I, a: Self::I) -> Self::I {
        std::array::from_fn(|l| {
            let pairs = w[l].to_le_bytes().into_iter().zip(a[l].to_le_bytes());
            pairs.fold(acc[l], |acc, (w, a)| acc + i32::from(w) * i32::from(a as i8))
        })
    }
    #[inline(never)]
    fn sum(self, mut a: Self::F) -> f32 {
        for width in [8, 4, 2, 1] {
            for i in 0..width {
                a[i] += a[i + width];
            }
        }
        a[0]
    }
    #[inline(never)]
    fn max_lane(self, a: Self::F) -> f32 {
        a.into_iter().fold(f32::NEG_INFINITY, f32::max)
    }

    #[inline(never)]
    fn lookup16(self, table: Self::F, i: Self::I) -> Self::F {
        std::array::from_fn(|l| table[(i[l] & 15) as usize])
    }
    #[inline(never)]
    fn lookup_bytes(self, table: Self::I, i: Self::I) -> Self::I {
        std::array::from_fn(|l| {
            let byte = |b: u8| table[l / 4 * 4 + usize::from(b & 15) / 4].to_le_bytes()[usize::from(b & 3)];
            i32::from_le_bytes(i[l].to_le_bytes().map(byte))
        })
    }
    #[inline(never)]
    fn lookup_bytes64(self, table: Self::I, i: Self::I) -> Self::I {
        let byte = |b: u8| table[usize::from(b & 63) / 4].to_le_bytes()[usize::from(b & 3)];
        std::array::from_fn(|l| i32::from_le_bytes(i[l].to_le_bytes().map(byte)))
    }
    #[inline(never)]
    fn gather(self, table: &[[u8; 4]], i: Self::I) -> Self::F {
        assert!(table.len().is_power_of_two(), "a table of {} entries", table.len());
        std::array::from_fn(|l| f32::from_le_bytes(table[i[l] as usize & (table.len() - 1)]))
    }
    #[inline(never)]
    fn transpose(self, rows: [Self::F; 16]) -> [Self::F; 16] {
        std::array::from_fn(|i| std::array::from_fn(|j| rows[j][i]))
    }
    #[inline(never)]
    fn prefetch<T>(self, _p: &[T], _ahead: usize) {}
}
