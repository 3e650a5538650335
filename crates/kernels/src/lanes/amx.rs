//! Tiles of 1 KB and their products (AMX-INT8; AMX-BF16 in [`bfloat`]), and the bytes that they are made of.
//!
//! Instructions by Intel's manual, volume 2: `LDTILECFG`, `TILELOADD`, `TDPBSSD`, `TILESTORED`, `TILERELEASE`.

#![allow(unsafe_code, reason = "intrinsics and tile instructions: the token proves that they may run")]

mod bfloat;

pub(crate) use bfloat::Halves;

use crate::isa::Amx;
use std::arch::asm;
use std::arch::x86_64::*;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// A line of a tile: four columns of sixteen rows, or 64 columns of a token.
pub(crate) type Line = [u8; 64];
/// Lines in a tile.
pub(crate) const HEIGHT: usize = 16;

/// As in `avx512.rs`: value intrinsics, and accesses of the whole of an array passed by reference.
macro_rules! run {
    ($e:expr) => {
        // SAFETY: `self` proves the features; pointers come from references to arrays of the width that is accessed.
        unsafe { $e }
    };
}

impl Amx {
    /// Sixteen numbers within i16, each of them as both words of its lane.
    #[inline(always)]
    pub(crate) fn twice(self, v: __m512) -> __m512i {
        run!({
            let v = _mm512_cvtps_epi32(v);
            let low = _mm512_set1_epi32(0xffff);
            // Where `low` has a bit the second, else the third.
            _mm512_ternarylogic_epi32::<0xca>(low, v, _mm512_slli_epi32::<16>(v))
        })
    }

    /// 64 pairs of bytes as words, `256 · high + low`: those at even places, and those at odd ones.
    #[inline(always)]
    pub(crate) fn words(self, high: __m512i, low: __m512i) -> [__m512i; 2] {
        run!({
            let below = _mm512_set1_epi16(0xff);
            [
                _mm512_ternarylogic_epi32::<0xca>(below, low, _mm512_slli_epi16::<8>(high)),
                _mm512_ternarylogic_epi32::<0xca>(below, _mm512_srli_epi16::<8>(low), high),
            ]
        })
    }

    /// The bytes of words less 128, in the order of [`Self::words`]: as signed bytes, `256 · high + low` is the word less 128.
    #[inline(always)]
    pub(crate) fn bytes(self, [even, odd]: [__m512i; 2]) -> [__m512i; 2] {
        run!({
            let below = _mm512_set1_epi16(0xff);
            let high = _mm512_ternarylogic_epi32::<0xca>(below, _mm512_srli_epi16::<8>(even), odd);
            let low = _mm512_ternarylogic_epi32::<0xca>(below, even, _mm512_slli_epi16::<8>(odd));
            [high, _mm512_xor_si512(low, _mm512_set1_epi8(-128))]
        })
    }

    /// `(a · b + 2^14) >> 15`, word by word.
    #[inline(always)]
    pub(crate) fn scaled(self, a: __m512i, b: __m512i) -> __m512i {
        run!(_mm512_mulhrs_epi16(a, b))
    }

    #[inline(always)]
    pub(crate) fn add_words(self, a: __m512i, b: __m512i) -> __m512i {
        run!(_mm512_add_epi16(a, b))
    }

    /// Each byte with the bits of `flip` turned over.
    #[inline(always)]
    pub(crate) fn flip(self, a: __m512i, flip: u8) -> __m512i {
        run!(_mm512_xor_si512(a, _mm512_set1_epi8(flip as i8)))
    }

    /// Bytes less than 16 times 16.
    #[inline(always)]
    pub(crate) fn times_16(self, a: __m512i) -> __m512i {
        run!(_mm512_slli_epi16::<4>(a))
    }

    /// `a - b`, byte by byte.
    #[inline(always)]
    pub(crate) fn less(self, a: __m512i, b: u8) -> __m512i {
        run!(_mm512_sub_epi8(a, _mm512_set1_epi8(b as i8)))
    }

    #[inline(always)]
    pub(crate) fn word(self, v: i16) -> __m512i {
        run!(_mm512_set1_epi16(v))
    }

    #[inline(always)]
    pub(crate) fn zero(self) -> __m512i {
        run!(_mm512_setzero_si512())
    }

    /// Sets the processor up for tiles of sixteen lines.
    pub(crate) fn unit(self) -> Unit {
        #[repr(align(64))]
        struct Configuration([u8; 64]);
        let mut configuration = Configuration([0; 64]);
        // Palette 1; for each of eight tiles, bytes a line (two bytes from 16 on) and lines (from 48 on).
        configuration.0[0] = 1;
        for tile in 0..8 {
            configuration.0[16 + 2 * tile] = 64;
            configuration.0[48 + tile] = HEIGHT as u8;
        }
        // SAFETY: `self` proves the instruction; it reads 64 bytes.
        unsafe {
            asm!("ldtilecfg [{}]", in(reg) &raw const configuration, options(nostack, preserves_flags, readonly))
        };
        Unit { thread: PhantomData }
    }
}

/// Lines of weights on the stack, written one after the other: `N` at most.
pub(crate) struct Lines<const N: usize> {
    len: usize,
    lines: [MaybeUninit<Aligned>; N],
}

#[repr(align(64))]
#[derive(Clone, Copy)]
struct Aligned(#[allow(dead_code, reason = "read as the line that it is")] Line);

impl<const N: usize> Lines<N> {
    pub(crate) fn new() -> Self {
        Self { len: 0, lines: [MaybeUninit::uninit(); N] }
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Appends lines: several at once, since a count in memory after each would take longer than the lines.
    #[inline(always)]
    pub(crate) fn push<const M: usize>(&mut self, amx: Amx, lines: [__m512i; M]) {
        let _ = amx;
        let into = &mut self.lines[self.len..self.len + M];
        for i in 0..M {
            // SAFETY: `amx` proves the feature; a line is 64 bytes long and aligned to that.
            unsafe { _mm512_store_si512(into[i].as_mut_ptr().cast(), lines[i]) };
        }
        self.len += M;
    }

    pub(crate) fn written(&self) -> &[Line] {
        // SAFETY: `push` wrote the first `len` lines; an aligned line is a line.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

/// 64 columns of sixteen tokens: of each the high bytes, then the low ones.
pub(crate) type Step = [[Line; 2]; HEIGHT];

/// Sums of products of sixteen tokens with sixteen rows, two for each of two panels: i32, a line for each token.
#[repr(align(64))]
pub(crate) struct Sums([[[Line; HEIGHT]; 2]; 2]);

impl Sums {
    pub(crate) const fn zero() -> Self {
        Self([[[[0; 64]; HEIGHT]; 2]; 2])
    }

    /// Both sums of a panel, of token `t`.
    #[inline(always)]
    pub(crate) fn of(&self, panel: usize, t: usize) -> [&Line; 2] {
        let [first, second] = &self.0[panel];
        [&first[t], &second[t]]
    }
}

/// The tiles of this thread, set up.
pub(crate) struct Unit {
    /// Other threads have tiles of their own.
    thread: PhantomData<*const ()>,
}

impl Unit {
    /// For two panels of weights of a byte, `[step][16 lines]`: the sums of `high · w` and of `low · w`. Tokens pass by the
    /// first cache, where the weights are to stay.
    #[inline(always)]
    pub(crate) fn bytes(&self, x: &[Step], w: [&[Line]; 2]) {
        let steps = x.len();
        assert!(
            steps > 0 && w.iter().all(|w| w.len() == steps * HEIGHT),
            "tiles: the weights do not fit {steps} steps"
        );
        // SAFETY: a `Unit` exists, so tiles are set up; every step reads 2 KB of `x` and 1 KB of each `w`, as checked. Tile
        // registers belong to nobody else between set-up and release.
        unsafe {
            asm!(
                "tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3",
                "2:",
                "tileloaddt1 tmm4, [{x} + {two}*1]",
                "tileloadd tmm6, [{w0} + {one}*1]",
                "tileloaddt1 tmm5, [{x} + {two}*1 + 64]",
                "tileloadd tmm7, [{w1} + {one}*1]",
                "tdpbssd tmm0, tmm4, tmm6",
                "tdpbssd tmm1, tmm5, tmm6",
                "tdpbssd tmm2, tmm4, tmm7",
                "tdpbssd tmm3, tmm5, tmm7",
                "add {x}, 2048", "add {w0}, 1024", "add {w1}, 1024",
                "dec {steps}",
                "jnz 2b",
                x = inout(reg) x.as_ptr() => _, w0 = inout(reg) w[0].as_ptr() => _, w1 = inout(reg) w[1].as_ptr() => _,
                steps = inout(reg) steps => _, one = in(reg) 64_usize, two = in(reg) 128_usize,
                options(nostack, readonly),
            );
        }
    }

    /// For two panels of weights of two bytes, `[step][16][high, low]`: the sums of `high · high`, and those of
    /// `low · high + high · low`.
    #[inline(always)]
    pub(crate) fn words(&self, x: &[Step], w: [&[Line]; 2]) {
        let steps = x.len();
        assert!(
            steps > 0 && w.iter().all(|w| w.len() == steps * 2 * HEIGHT),
            "tiles: the weights do not fit {steps} steps"
        );
        // SAFETY: as above, with 2 KB of each `w` a step.
        unsafe {
            asm!(
                "tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3",
                "2:",
                "tileloaddt1 tmm4, [{x} + {two}*1]",
                "tileloadd tmm6, [{w0} + {two}*1]",
                "tileloaddt1 tmm5, [{x} + {two}*1 + 64]",
                "tileloadd tmm7, [{w1} + {two}*1]",
                "tdpbssd tmm0, tmm4, tmm6",
                "tdpbssd tmm1, tmm5, tmm6",
                "tileloadd tmm6, [{w0} + {two}*1 + 64]",
                "tdpbssd tmm2, tmm4, tmm7",
                "tdpbssd tmm3, tmm5, tmm7",
                "tileloadd tmm7, [{w1} + {two}*1 + 64]",
                "tdpbssd tmm1, tmm4, tmm6",
                "tdpbssd tmm3, tmm4, tmm7",
                "add {x}, 2048", "add {w0}, 2048", "add {w1}, 2048",
                "dec {steps}",
                "jnz 2b",
                x = inout(reg) x.as_ptr() => _, w0 = inout(reg) w[0].as_ptr() => _, w1 = inout(reg) w[1].as_ptr() => _,
                steps = inout(reg) steps => _, two = in(reg) 128_usize,
                options(nostack, readonly),
            );
        }
    }

    /// Takes the sums of [`Self::bytes`] or [`Self::words`] out of the tiles.
    #[inline(always)]
    pub(crate) fn store(&self, sums: &mut Sums) {
        // SAFETY: a `Unit` exists, so tiles are set up; the four sums are 1 KB each.
        unsafe {
            asm!(
                "tilestored [{sums} + {one}*1], tmm0",
                "tilestored [{sums} + {one}*1 + 1024], tmm1",
                "tilestored [{sums} + {one}*1 + 2048], tmm2",
                "tilestored [{sums} + {one}*1 + 3072], tmm3",
                sums = in(reg) &raw mut *sums, one = in(reg) 64_usize,
                options(nostack, preserves_flags),
            );
        }
    }
}

impl Drop for Unit {
    fn drop(&mut self) {
        // SAFETY: tiles are set up, so that the instruction exists; nothing is in the tiles that is still needed.
        unsafe { asm!("tilerelease", options(nomem, nostack, preserves_flags)) };
    }
}
