//! Sixteen lanes in one 512-bit register.

#![allow(unsafe_code, reason = "intrinsics: the token proves that they may run")]

use super::Lanes;
use crate::isa::Avx512;
use std::arch::x86_64::*;

/// Runs intrinsics. Their only conditions are the target features, which `Avx512` proves, and that the memory they
/// touch is the whole of an array that is passed by reference: the macro is used for nothing else.
macro_rules! run {
    ($e:expr) => {
        // SAFETY: `self` proves the features; pointers come from references to arrays of the width that is accessed.
        unsafe { $e }
    };
}

impl<const VBMI: bool> Lanes for Avx512<VBMI> {
    type F = __m512;
    type I = __m512i;
    const TILE: usize = 8;
    const FAST_LOOKUP: bool = true;

    #[inline(always)]
    fn splat(self, v: f32) -> Self::F {
        run!(_mm512_set1_ps(v))
    }
    #[inline(always)]
    fn load(self, p: &[f32; 16]) -> Self::F {
        run!(_mm512_loadu_ps(p.as_ptr()))
    }
    #[inline(always)]
    fn store(self, v: Self::F, p: &mut [f32; 16]) {
        run!(_mm512_storeu_ps(p.as_mut_ptr(), v))
    }
    #[inline(always)]
    fn load_bytes(self, p: &[u8; 64]) -> Self::F {
        run!(_mm512_loadu_ps(p.as_ptr().cast()))
    }
    #[inline(always)]
    fn load_f16(self, p: &[u16; 16]) -> Self::F {
        run!(_mm512_cvt_roundph_ps::<_MM_FROUND_CUR_DIRECTION>(_mm256_loadu_si256(p.as_ptr().cast())))
    }
    #[inline(always)]
    fn load_f16_bytes(self, p: &[u8; 32]) -> Self::F {
        run!(_mm512_cvt_roundph_ps::<_MM_FROUND_CUR_DIRECTION>(_mm256_loadu_si256(p.as_ptr().cast())))
    }
    #[inline(always)]
    fn store_f16(self, v: Self::F, p: &mut [u16; 16]) {
        run!(_mm256_storeu_si256(p.as_mut_ptr().cast(), _mm512_cvtps_ph::<{ _MM_FROUND_TO_NEAREST_INT }>(v)))
    }

    #[inline(always)]
    fn add(self, a: Self::F, b: Self::F) -> Self::F {
        run!(_mm512_add_ps(a, b))
    }
    #[inline(always)]
    fn sub(self, a: Self::F, b: Self::F) -> Self::F {
        run!(_mm512_sub_ps(a, b))
    }
    #[inline(always)]
    fn mul(self, a: Self::F, b: Self::F) -> Self::F {
        run!(_mm512_mul_ps(a, b))
    }
    #[inline(always)]
    fn div(self, a: Self::F, b: Self::F) -> Self::F {
        run!(_mm512_div_ps(a, b))
    }
    #[inline(always)]
    fn sqrt(self, a: Self::F) -> Self::F {
        run!(_mm512_sqrt_ps(a))
    }
    #[inline(always)]
    fn fma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        run!(_mm512_fmadd_ps(a, b, c))
    }
    #[inline(always)]
    fn max(self, a: Self::F, b: Self::F) -> Self::F {
        run!(_mm512_max_ps(a, b))
    }
    #[inline(always)]
    fn min(self, a: Self::F, b: Self::F) -> Self::F {
        run!(_mm512_min_ps(a, b))
    }
    #[inline(always)]
    fn round(self, a: Self::F) -> Self::F {
        run!(_mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a))
    }
    #[inline(always)]
    fn select_gt(self, a: Self::F, b: Self::F, x: Self::F, y: Self::F) -> Self::F {
        run!(_mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_GT_OQ>(a, b), y, x))
    }
    #[inline(always)]
    fn scale2(self, p: Self::F, n: Self::F) -> Self::F {
        run!(_mm512_scalef_ps(p, n))
    }

    #[inline(always)]
    fn isplat(self, v: i32) -> Self::I {
        run!(_mm512_set1_epi32(v))
    }
    #[inline(always)]
    fn iload(self, p: &[u8; 64]) -> Self::I {
        run!(_mm512_loadu_si512(p.as_ptr().cast()))
    }
    #[inline(always)]
    fn iand(self, a: Self::I, b: Self::I) -> Self::I {
        run!(_mm512_and_si512(a, b))
    }
    #[inline(always)]
    fn ior(self, a: Self::I, b: Self::I) -> Self::I {
        run!(_mm512_or_si512(a, b))
    }
    #[inline(always)]
    fn shr(self, a: Self::I, n: u32) -> Self::I {
        run!(_mm512_srlv_epi32(a, _mm512_set1_epi32(n as i32)))
    }
    #[inline(always)]
    fn shl(self, a: Self::I, n: u32) -> Self::I {
        run!(_mm512_sllv_epi32(a, _mm512_set1_epi32(n as i32)))
    }
    #[inline(always)]
    fn merge(self, mask: i32, a: Self::I, b: Self::I) -> Self::I {
        run!(_mm512_ternarylogic_epi32::<0xca>(_mm512_set1_epi32(mask), a, b))
    }
    #[inline(always)]
    fn high_nibbles(self, a: Self::I) -> Self::I {
        if VBMI {
            // Bit `i` of a byte becomes its bit `4 + i`, for `i` in 0..4.
            return run!(_mm512_gf2p8affine_epi64_epi8::<0>(a, _mm512_set1_epi64(0x1020_4080_0000_0000)));
        }
        self.low_nibbles(self.shr(a, 4))
    }
    #[inline(always)]
    fn to_f32(self, a: Self::I) -> Self::F {
        run!(_mm512_cvtepi32_ps(a))
    }
    #[inline(always)]
    fn to_i32(self, a: Self::F) -> Self::I {
        run!(_mm512_cvtps_epi32(a))
    }
    #[inline(always)]
    fn as_bits(self, a: Self::F) -> Self::I {
        run!(_mm512_castps_si512(a))
    }
    #[inline(always)]
    fn as_float(self, a: Self::I) -> Self::F {
        run!(_mm512_castsi512_ps(a))
    }

    #[inline(always)]
    fn store_bytes(self, v: Self::I, p: &mut [u8; 16]) {
        run!(_mm_storeu_si128(p.as_mut_ptr().cast(), _mm512_cvtepi32_epi8(v)))
    }

    const UNSIGNED: bool = true;
    #[inline(always)]
    fn dot_nibbles(self, acc: Self::I, w: Self::I, a: Self::I) -> Self::I {
        run!(_mm512_dpbusd_epi32(acc, w, a))
    }
    #[inline(always)]
    fn dot_bytes(self, acc: Self::I, w: Self::I, a: Self::I) -> Self::I {
        run!(_mm512_dpbusd_epi32(acc, w, a))
    }
    #[inline(always)]
    fn sum(self, a: Self::F) -> f32 {
        run!({
            let eight = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps::<1>(a));
            let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        })
    }
    #[inline(always)]
    fn max_lane(self, a: Self::F) -> f32 {
        run!({
            let eight = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps::<1>(a));
            let four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
            let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)))
        })
    }

    #[inline(always)]
    fn lookup16(self, table: Self::F, i: Self::I) -> Self::F {
        run!(_mm512_permutexvar_ps(i, table))
    }
    #[inline(always)]
    fn nibble(self, a: Self::I, shift: u32) -> Self::F {
        // The permutation looks at the low four bits only: no mask, no conversion.
        let integers =
            run!(_mm512_setr_ps(0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0));
        self.lookup16(integers, self.shr(a, shift))
    }
    #[inline(always)]
    fn lookup_bytes(self, table: Self::I, i: Self::I) -> Self::I {
        run!(_mm512_shuffle_epi8(table, i))
    }
    #[inline(always)]
    fn lookup_bytes64(self, table: Self::I, i: Self::I) -> Self::I {
        if VBMI {
            return run!(_mm512_permutexvar_epi8(i, table));
        }
        run!({
            let (a, b) = (_mm512_shuffle_i32x4::<0x00>(table, table), _mm512_shuffle_i32x4::<0x55>(table, table));
            let (c, d) = (_mm512_shuffle_i32x4::<0xaa>(table, table), _mm512_shuffle_i32x4::<0xff>(table, table));
            let odd = _mm512_test_epi8_mask(i, _mm512_set1_epi8(16));
            let high = _mm512_test_epi8_mask(i, _mm512_set1_epi8(32));
            let i = _mm512_and_si512(i, _mm512_set1_epi8(15));
            let ab = _mm512_mask_shuffle_epi8(_mm512_shuffle_epi8(a, i), odd, b, i);
            let cd = _mm512_mask_shuffle_epi8(_mm512_shuffle_epi8(c, i), odd, d, i);
            _mm512_mask_blend_epi8(high, ab, cd)
        })
    }
    #[inline(always)]
    fn lookup64(self, table: &[[u8; 4]; 64], i: Self::I) -> Self::F {
        let quarters = table.as_flattened().as_chunks::<64>().0;
        let [a, b] = [self.load_bytes(&quarters[0]), self.load_bytes(&quarters[1])];
        let [c, d] = [self.load_bytes(&quarters[2]), self.load_bytes(&quarters[3])];
        // The permutations look at five bits; the sixth chooses between them.
        run!({
            let high = _mm512_test_epi32_mask(i, _mm512_set1_epi32(32));
            _mm512_mask_blend_ps(high, _mm512_permutex2var_ps(a, i, b), _mm512_permutex2var_ps(c, i, d))
        })
    }
    #[inline(always)]
    fn gather(self, table: &[[u8; 4]], i: Self::I) -> Self::F {
        assert!(table.len().is_power_of_two(), "a table of {} entries", table.len());
        let i = self.iand(i, self.isplat(table.len() as i32 - 1));
        // SAFETY: `self` proves the features; the mask keeps every index inside the table.
        unsafe { _mm512_i32gather_ps::<4>(i, table.as_ptr().cast()) }
    }
    #[inline(always)]
    fn transpose(self, r: [Self::F; 16]) -> [Self::F; 16] {
        // quad[q][c]: in each 128-bit part p, column 4p + c of rows 4q..4q+4.
        let quad = [
            self.quad([r[0], r[1], r[2], r[3]]),
            self.quad([r[4], r[5], r[6], r[7]]),
            self.quad([r[8], r[9], r[10], r[11]]),
            self.quad([r[12], r[13], r[14], r[15]]),
        ];
        let mut out = r;
        for c in 0..4 {
            let a = run!(_mm512_shuffle_f32x4::<0x88>(quad[0][c], quad[1][c]));
            let b = run!(_mm512_shuffle_f32x4::<0xdd>(quad[0][c], quad[1][c]));
            let d = run!(_mm512_shuffle_f32x4::<0x88>(quad[2][c], quad[3][c]));
            let e = run!(_mm512_shuffle_f32x4::<0xdd>(quad[2][c], quad[3][c]));
            out[c] = run!(_mm512_shuffle_f32x4::<0x88>(a, d));
            out[4 + c] = run!(_mm512_shuffle_f32x4::<0x88>(b, e));
            out[8 + c] = run!(_mm512_shuffle_f32x4::<0xdd>(a, d));
            out[12 + c] = run!(_mm512_shuffle_f32x4::<0xdd>(b, e));
        }
        out
    }
    const FAST_TURN_F16: bool = true;
    #[inline(always)]
    fn turn_f16(self, r: [&[u16; 8]; 32], out: &mut [[u16; 32]; 8]) {
        // Part `p` of vector `i` is row `8p + i`: what is turned inside of parts then lies in order, and half of the instructions
        // are loads.
        let mut ones = [self.isplat(0); 8];
        for (i, ones) in ones.iter_mut().enumerate() {
            *ones = run!({
                let parts = _mm512_castsi128_si512(_mm_loadu_si128(r[i].as_ptr().cast()));
                let parts = _mm512_inserti32x4::<1>(parts, _mm_loadu_si128(r[i + 8].as_ptr().cast()));
                let parts = _mm512_inserti32x4::<2>(parts, _mm_loadu_si128(r[i + 16].as_ptr().cast()));
                _mm512_inserti32x4::<3>(parts, _mm_loadu_si128(r[i + 24].as_ptr().cast()))
            });
        }
        let mut pairs = ones;
        for i in 0..4 {
            // Columns 0..4, then 4..8.
            pairs[2 * i] = run!(_mm512_unpacklo_epi16(ones[2 * i], ones[2 * i + 1]));
            pairs[2 * i + 1] = run!(_mm512_unpackhi_epi16(ones[2 * i], ones[2 * i + 1]));
        }
        let mut fours = ones;
        for i in [0, 4] {
            for half in 0..2 {
                // Two columns each, of rows i..i + 4.
                let (a, b) = (pairs[i + half], pairs[i + 2 + half]);
                fours[i + 2 * half] = run!(_mm512_unpacklo_epi32(a, b));
                fours[i + 2 * half + 1] = run!(_mm512_unpackhi_epi32(a, b));
            }
        }
        for i in 0..4 {
            let (a, b) = (fours[i], fours[i + 4]);
            run!({
                _mm512_storeu_si512(out[2 * i].as_mut_ptr().cast(), _mm512_unpacklo_epi64(a, b));
                _mm512_storeu_si512(out[2 * i + 1].as_mut_ptr().cast(), _mm512_unpackhi_epi64(a, b));
            });
        }
    }
    #[inline(always)]
    fn prefetch<T>(self, p: &[T], ahead: usize) {
        // A prefetch never faults, wherever it points.
        run!(_mm_prefetch::<_MM_HINT_T0>(p.as_ptr().cast::<i8>().wrapping_add(ahead)))
    }
}

impl<const VBMI: bool> Avx512<VBMI> {
    /// Column `c` of four rows, in each 128-bit part.
    #[inline(always)]
    fn quad(self, r: [__m512; 4]) -> [__m512; 4] {
        run!({
            let (lo0, hi0) = (_mm512_unpacklo_ps(r[0], r[1]), _mm512_unpackhi_ps(r[0], r[1]));
            let (lo1, hi1) = (_mm512_unpacklo_ps(r[2], r[3]), _mm512_unpackhi_ps(r[2], r[3]));
            [
                _mm512_shuffle_ps::<0x44>(lo0, lo1),
                _mm512_shuffle_ps::<0xee>(lo0, lo1),
                _mm512_shuffle_ps::<0x44>(hi0, hi1),
                _mm512_shuffle_ps::<0xee>(hi0, hi1),
            ]
        })
    }
}
