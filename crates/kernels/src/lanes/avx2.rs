//! Sixteen lanes in two 256-bit registers: lanes 0..8 and 8..16.

#![allow(unsafe_code, reason = "intrinsics: the token proves that they may run")]

use super::Lanes;
use crate::isa::Avx2;
use std::arch::x86_64::*;

/// Runs intrinsics. Their only conditions are the target features, which `Avx2` proves, and that the memory they touch
/// is the whole of an array that is passed by reference: the macro is used for nothing else.
macro_rules! run {
    ($e:expr) => {
        // SAFETY: `self` proves the features; pointers come from references to arrays of the width that is accessed.
        unsafe { $e }
    };
}

macro_rules! both {
    ($f:ident, $a:expr) => {
        run!([$f($a[0]), $f($a[1])])
    };
    ($f:ident, $a:expr, $b:expr) => {
        run!([$f($a[0], $b[0]), $f($a[1], $b[1])])
    };
}

impl Lanes for Avx2 {
    type F = [__m256; 2];
    type I = [__m256i; 2];
    const TILE: usize = 4;
    const FAST_LOOKUP: bool = false;

    #[inline(always)]
    fn splat(self, v: f32) -> Self::F {
        run!([_mm256_set1_ps(v); 2])
    }
    #[inline(always)]
    fn load(self, p: &[f32; 16]) -> Self::F {
        run!([_mm256_loadu_ps(p.as_ptr()), _mm256_loadu_ps(p.as_ptr().add(8))])
    }
    #[inline(always)]
    fn store(self, v: Self::F, p: &mut [f32; 16]) {
        run!({
            _mm256_storeu_ps(p.as_mut_ptr(), v[0]);
            _mm256_storeu_ps(p.as_mut_ptr().add(8), v[1]);
        })
    }
    #[inline(always)]
    fn load_bytes(self, p: &[u8; 64]) -> Self::F {
        run!([_mm256_loadu_ps(p.as_ptr().cast()), _mm256_loadu_ps(p.as_ptr().add(32).cast())])
    }
    #[inline(always)]
    fn load_f16(self, p: &[u16; 16]) -> Self::F {
        run!([
            _mm256_cvtph_ps(_mm_loadu_si128(p.as_ptr().cast())),
            _mm256_cvtph_ps(_mm_loadu_si128(p.as_ptr().add(8).cast()))
        ])
    }
    #[inline(always)]
    fn load_f16_bytes(self, p: &[u8; 32]) -> Self::F {
        run!([
            _mm256_cvtph_ps(_mm_loadu_si128(p.as_ptr().cast())),
            _mm256_cvtph_ps(_mm_loadu_si128(p.as_ptr().add(16).cast()))
        ])
    }
    #[inline(always)]
    fn store_f16(self, v: Self::F, p: &mut [u16; 16]) {
        run!({
            _mm_storeu_si128(p.as_mut_ptr().cast(), _mm256_cvtps_ph::<{ _MM_FROUND_TO_NEAREST_INT }>(v[0]));
            _mm_storeu_si128(p.as_mut_ptr().add(8).cast(), _mm256_cvtps_ph::<{ _MM_FROUND_TO_NEAREST_INT }>(v[1]));
        })
    }

    #[inline(always)]
    fn add(self, a: Self::F, b: Self::F) -> Self::F {
        both!(_mm256_add_ps, a, b)
    }
    #[inline(always)]
    fn sub(self, a: Self::F, b: Self::F) -> Self::F {
        both!(_mm256_sub_ps, a, b)
    }
    #[inline(always)]
    fn mul(self, a: Self::F, b: Self::F) -> Self::F {
        both!(_mm256_mul_ps, a, b)
    }
    #[inline(always)]
    fn div(self, a: Self::F, b: Self::F) -> Self::F {
        both!(_mm256_div_ps, a, b)
    }
    #[inline(always)]
    fn sqrt(self, a: Self::F) -> Self::F {
        both!(_mm256_sqrt_ps, a)
    }
    #[inline(always)]
    fn fma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        run!([_mm256_fmadd_ps(a[0], b[0], c[0]), _mm256_fmadd_ps(a[1], b[1], c[1])])
    }
    #[inline(always)]
    fn max(self, a: Self::F, b: Self::F) -> Self::F {
        both!(_mm256_max_ps, a, b)
    }
    #[inline(always)]
    fn min(self, a: Self::F, b: Self::F) -> Self::F {
        both!(_mm256_min_ps, a, b)
    }
    #[inline(always)]
    fn round(self, a: Self::F) -> Self::F {
        const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
        run!([_mm256_round_ps::<NEAREST>(a[0]), _mm256_round_ps::<NEAREST>(a[1])])
    }
    #[inline(always)]
    fn select_gt(self, a: Self::F, b: Self::F, x: Self::F, y: Self::F) -> Self::F {
        run!([
            _mm256_blendv_ps(y[0], x[0], _mm256_cmp_ps::<_CMP_GT_OQ>(a[0], b[0])),
            _mm256_blendv_ps(y[1], x[1], _mm256_cmp_ps::<_CMP_GT_OQ>(a[1], b[1]))
        ])
    }
    #[inline(always)]
    fn scale2(self, p: Self::F, n: Self::F) -> Self::F {
        let n = self.to_i32(n);
        let half = run!([_mm256_srai_epi32::<1>(n[0]), _mm256_srai_epi32::<1>(n[1])]);
        let rest = both!(_mm256_sub_epi32, n, half);
        let bias = self.isplat(127);
        let first = self.as_float(self.shl(both!(_mm256_add_epi32, half, bias), 23));
        let second = self.as_float(self.shl(both!(_mm256_add_epi32, rest, bias), 23));
        self.mul(self.mul(p, first), second)
    }

    #[inline(always)]
    fn isplat(self, v: i32) -> Self::I {
        run!([_mm256_set1_epi32(v); 2])
    }
    #[inline(always)]
    fn iload(self, p: &[u8; 64]) -> Self::I {
        run!([_mm256_loadu_si256(p.as_ptr().cast()), _mm256_loadu_si256(p.as_ptr().add(32).cast())])
    }
    #[inline(always)]
    fn iand(self, a: Self::I, b: Self::I) -> Self::I {
        both!(_mm256_and_si256, a, b)
    }
    #[inline(always)]
    fn ior(self, a: Self::I, b: Self::I) -> Self::I {
        both!(_mm256_or_si256, a, b)
    }
    #[inline(always)]
    fn shr(self, a: Self::I, n: u32) -> Self::I {
        let n = run!(_mm256_set1_epi32(n as i32));
        run!([_mm256_srlv_epi32(a[0], n), _mm256_srlv_epi32(a[1], n)])
    }
    #[inline(always)]
    fn shl(self, a: Self::I, n: u32) -> Self::I {
        let n = run!(_mm256_set1_epi32(n as i32));
        run!([_mm256_sllv_epi32(a[0], n), _mm256_sllv_epi32(a[1], n)])
    }
    #[inline(always)]
    fn to_f32(self, a: Self::I) -> Self::F {
        both!(_mm256_cvtepi32_ps, a)
    }
    #[inline(always)]
    fn to_i32(self, a: Self::F) -> Self::I {
        both!(_mm256_cvtps_epi32, a)
    }
    #[inline(always)]
    fn as_bits(self, a: Self::F) -> Self::I {
        both!(_mm256_castps_si256, a)
    }
    #[inline(always)]
    fn as_float(self, a: Self::I) -> Self::F {
        both!(_mm256_castsi256_ps, a)
    }

    #[inline(always)]
    fn store_bytes(self, v: Self::I, p: &mut [u8; 16]) {
        run!({
            let low = _mm256_and_si256(v[0], _mm256_set1_epi32(255));
            let high = _mm256_and_si256(v[1], _mm256_set1_epi32(255));
            // Sixteen-bit numbers as 0..4, 8..12, 4..8, 12..16; put in order, then narrowed.
            let words = _mm256_permute4x64_epi64::<0xd8>(_mm256_packus_epi32(low, high));
            let bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words));
            _mm_storeu_si128(p.as_mut_ptr().cast(), bytes);
        })
    }

    const UNSIGNED: bool = false;
    #[inline(always)]
    fn dot_nibbles(self, acc: Self::I, w: Self::I, a: Self::I) -> Self::I {
        // Two products of at most 15 · 128 cannot saturate the 16-bit sum.
        run!({
            let ones = _mm256_set1_epi16(1);
            [
                _mm256_add_epi32(acc[0], _mm256_madd_epi16(_mm256_maddubs_epi16(w[0], a[0]), ones)),
                _mm256_add_epi32(acc[1], _mm256_madd_epi16(_mm256_maddubs_epi16(w[1], a[1]), ones)),
            ]
        })
    }
    #[inline(always)]
    fn dot_bytes(self, acc: Self::I, w: Self::I, a: Self::I) -> Self::I {
        // |w| · (a with the sign of w): two products of at most 128 · 127 cannot saturate the 16-bit sum.
        run!({
            let top = _mm256_set1_epi8(-128);
            let (w0, w1) = (_mm256_xor_si256(w[0], top), _mm256_xor_si256(w[1], top));
            let first = _mm256_maddubs_epi16(_mm256_abs_epi8(w0), _mm256_sign_epi8(a[0], w0));
            let second = _mm256_maddubs_epi16(_mm256_abs_epi8(w1), _mm256_sign_epi8(a[1], w1));
            let ones = _mm256_set1_epi16(1);
            [
                _mm256_add_epi32(acc[0], _mm256_madd_epi16(first, ones)),
                _mm256_add_epi32(acc[1], _mm256_madd_epi16(second, ones)),
            ]
        })
    }
    #[inline(always)]
    fn sum(self, a: Self::F) -> f32 {
        run!({
            let eight = _mm256_add_ps(a[0], a[1]);
            let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        })
    }
    #[inline(always)]
    fn max_lane(self, a: Self::F) -> f32 {
        run!({
            let eight = _mm256_max_ps(a[0], a[1]);
            let four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
            let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)))
        })
    }

    #[inline(always)]
    fn lookup16(self, table: Self::F, i: Self::I) -> Self::F {
        // The permutation looks at three bits; the fourth, moved to the sign, chooses between the two halves.
        let high = self.as_float(self.shl(i, 28));
        macro_rules! pick {
            ($h:literal) => {
                run!({
                    let (low, up) =
                        (_mm256_permutevar8x32_ps(table[0], i[$h]), _mm256_permutevar8x32_ps(table[1], i[$h]));
                    _mm256_blendv_ps(low, up, high[$h])
                })
            };
        }
        [pick!(0), pick!(1)]
    }
    #[inline(always)]
    fn lookup_bytes(self, table: Self::I, i: Self::I) -> Self::I {
        both!(_mm256_shuffle_epi8, table, i)
    }
    #[inline(always)]
    fn lookup_bytes64(self, table: Self::I, i: Self::I) -> Self::I {
        run!({
            let (a, b) = (_mm256_permute4x64_epi64::<0x44>(table[0]), _mm256_permute4x64_epi64::<0xee>(table[0]));
            let (c, d) = (_mm256_permute4x64_epi64::<0x44>(table[1]), _mm256_permute4x64_epi64::<0xee>(table[1]));
            let mut out = i;
            for half in 0..2 {
                // Bits 4 and 5 come to the top of their bytes, where a blend looks.
                let (odd, high) = (_mm256_slli_epi32::<3>(i[half]), _mm256_slli_epi32::<2>(i[half]));
                let i = _mm256_and_si256(i[half], _mm256_set1_epi8(15));
                let ab = _mm256_blendv_epi8(_mm256_shuffle_epi8(a, i), _mm256_shuffle_epi8(b, i), odd);
                let cd = _mm256_blendv_epi8(_mm256_shuffle_epi8(c, i), _mm256_shuffle_epi8(d, i), odd);
                out[half] = _mm256_blendv_epi8(ab, cd, high);
            }
            out
        })
    }
    #[inline(always)]
    fn gather(self, table: &[[u8; 4]], i: Self::I) -> Self::F {
        assert!(table.len().is_power_of_two(), "a table of {} entries", table.len());
        let i = self.iand(i, self.isplat(table.len() as i32 - 1));
        let table = table.as_ptr().cast();
        // SAFETY: `self` proves the features; the mask keeps every index inside the table.
        unsafe { [_mm256_i32gather_ps::<4>(table, i[0]), _mm256_i32gather_ps::<4>(table, i[1])] }
    }
    #[inline(always)]
    fn transpose(self, r: [Self::F; 16]) -> [Self::F; 16] {
        let mut out = r;
        for (top, left) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let mut block = [r[0][0]; 8];
            for i in 0..8 {
                block[i] = r[8 * top + i][left];
            }
            let turned = self.transpose8(block);
            for i in 0..8 {
                out[8 * left + i][top] = turned[i];
            }
        }
        out
    }
    #[inline(always)]
    fn prefetch<T>(self, p: &[T], ahead: usize) {
        // A prefetch never faults, wherever it points.
        run!(_mm_prefetch::<_MM_HINT_T0>(p.as_ptr().cast::<i8>().wrapping_add(ahead)))
    }
}

impl Avx2 {
    /// Column `c` of four rows, in each 128-bit part.
    #[inline(always)]
    fn quad(self, r: [__m256; 4]) -> [__m256; 4] {
        run!({
            let (lo0, hi0) = (_mm256_unpacklo_ps(r[0], r[1]), _mm256_unpackhi_ps(r[0], r[1]));
            let (lo1, hi1) = (_mm256_unpacklo_ps(r[2], r[3]), _mm256_unpackhi_ps(r[2], r[3]));
            [
                _mm256_shuffle_ps::<0x44>(lo0, lo1),
                _mm256_shuffle_ps::<0xee>(lo0, lo1),
                _mm256_shuffle_ps::<0x44>(hi0, hi1),
                _mm256_shuffle_ps::<0xee>(hi0, hi1),
            ]
        })
    }

    #[inline(always)]
    fn transpose8(self, r: [__m256; 8]) -> [__m256; 8] {
        let (a, b) = (self.quad([r[0], r[1], r[2], r[3]]), self.quad([r[4], r[5], r[6], r[7]]));
        let mut out = r;
        for c in 0..4 {
            out[c] = run!(_mm256_permute2f128_ps::<0x20>(a[c], b[c]));
            out[4 + c] = run!(_mm256_permute2f128_ps::<0x31>(a[c], b[c]));
        }
        out
    }
}
