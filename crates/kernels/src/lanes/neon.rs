//! Sixteen lanes in four 128-bit registers.
//!
//! With `I8MM`, `usdot` takes bytes of weights as unsigned, and `usmmla` multiplies two rows of eight columns with the high and
//! the low bytes of a token: twice the products of `sdot`, for one order of the weights that all tokens share.

#![allow(unsafe_code, reason = "intrinsics: the token proves that they may run")]

use super::Lanes;
use crate::isa::Neon;
use std::arch::aarch64::*;

/// Runs intrinsics. Their only conditions are the target features, which `Neon` proves, and that the memory they touch
/// is the whole of an array that is passed by reference: the macro is used for nothing else.
macro_rules! run {
    ($e:expr) => {
        // SAFETY: `self` proves the features; pointers come from references to arrays of the width that is accessed.
        unsafe { $e }
    };
}

/// The same for each of the four registers. Not a closure: that would be a function of its own, compiled without the
/// instruction set.
macro_rules! four {
    (|$i:ident| $e:expr) => {
        run!([
            {
                let $i = 0;
                $e
            },
            {
                let $i = 1;
                $e
            },
            {
                let $i = 2;
                $e
            },
            {
                let $i = 3;
                $e
            },
        ])
    };
}

macro_rules! each {
    ($f:ident, $a:expr) => {
        run!([$f($a[0]), $f($a[1]), $f($a[2]), $f($a[3])])
    };
    ($f:ident, $a:expr, $b:expr) => {
        run!([$f($a[0], $b[0]), $f($a[1], $b[1]), $f($a[2], $b[2]), $f($a[3], $b[3])])
    };
}

impl<const I8MM: bool> Lanes for Neon<I8MM> {
    type F = [float32x4_t; 4];
    type I = [int32x4_t; 4];
    const TILE: usize = 4;
    const FAST_LOOKUP: bool = false;

    #[inline(always)]
    fn splat(self, v: f32) -> Self::F {
        run!([vdupq_n_f32(v); 4])
    }
    #[inline(always)]
    fn load(self, p: &[f32; 16]) -> Self::F {
        let p = p.as_ptr();
        run!([vld1q_f32(p), vld1q_f32(p.add(4)), vld1q_f32(p.add(8)), vld1q_f32(p.add(12))])
    }
    #[inline(always)]
    fn store(self, v: Self::F, p: &mut [f32; 16]) {
        let p = p.as_mut_ptr();
        run!({
            vst1q_f32(p, v[0]);
            vst1q_f32(p.add(4), v[1]);
            vst1q_f32(p.add(8), v[2]);
            vst1q_f32(p.add(12), v[3]);
        })
    }
    #[inline(always)]
    fn load_bytes(self, p: &[u8; 64]) -> Self::F {
        let p = p.as_ptr();
        four!(|i| vreinterpretq_f32_u8(vld1q_u8(p.add(16 * i))))
    }
    #[inline(always)]
    fn load_f16(self, p: &[u16; 16]) -> Self::F {
        let p = p.as_ptr();
        four!(|i| widen(vld1_u16(p.add(4 * i))))
    }
    #[inline(always)]
    fn load_f16_bytes(self, p: &[u8; 32]) -> Self::F {
        let p = p.as_ptr();
        four!(|i| widen(vreinterpret_u16_u8(vld1_u8(p.add(8 * i)))))
    }
    #[inline(always)]
    fn store_f16(self, v: Self::F, p: &mut [u16; 16]) {
        let p = p.as_mut_ptr();
        for (i, v) in v.into_iter().enumerate() {
            run!(vst1_u16(p.add(4 * i), narrow(v)));
        }
    }

    #[inline(always)]
    fn add(self, a: Self::F, b: Self::F) -> Self::F {
        each!(vaddq_f32, a, b)
    }
    #[inline(always)]
    fn sub(self, a: Self::F, b: Self::F) -> Self::F {
        each!(vsubq_f32, a, b)
    }
    #[inline(always)]
    fn mul(self, a: Self::F, b: Self::F) -> Self::F {
        each!(vmulq_f32, a, b)
    }
    #[inline(always)]
    fn div(self, a: Self::F, b: Self::F) -> Self::F {
        each!(vdivq_f32, a, b)
    }
    #[inline(always)]
    fn sqrt(self, a: Self::F) -> Self::F {
        each!(vsqrtq_f32, a)
    }
    #[inline(always)]
    fn fma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        four!(|i| vfmaq_f32(c[i], a[i], b[i]))
    }
    #[inline(always)]
    fn max(self, a: Self::F, b: Self::F) -> Self::F {
        self.select_gt(a, b, a, b)
    }
    #[inline(always)]
    fn min(self, a: Self::F, b: Self::F) -> Self::F {
        self.select_gt(b, a, a, b)
    }
    #[inline(always)]
    fn round(self, a: Self::F) -> Self::F {
        each!(vrndnq_f32, a)
    }
    #[inline(always)]
    fn select_gt(self, a: Self::F, b: Self::F, x: Self::F, y: Self::F) -> Self::F {
        four!(|i| vbslq_f32(vcgtq_f32(a[i], b[i]), x[i], y[i]))
    }
    #[inline(always)]
    fn scale2(self, p: Self::F, n: Self::F) -> Self::F {
        let n = self.to_i32(n);
        four!(|i| {
            let half = vshrq_n_s32::<1>(n[i]);
            let rest = vsubq_s32(n[i], half);
            let bias = vdupq_n_s32(127);
            let first = vreinterpretq_f32_s32(vshlq_n_s32::<23>(vaddq_s32(half, bias)));
            let second = vreinterpretq_f32_s32(vshlq_n_s32::<23>(vaddq_s32(rest, bias)));
            vmulq_f32(vmulq_f32(p[i], first), second)
        })
    }

    #[inline(always)]
    fn isplat(self, v: i32) -> Self::I {
        run!([vdupq_n_s32(v); 4])
    }
    #[inline(always)]
    fn iload(self, p: &[u8; 64]) -> Self::I {
        let p = p.as_ptr();
        four!(|i| vreinterpretq_s32_u8(vld1q_u8(p.add(16 * i))))
    }
    #[inline(always)]
    fn iand(self, a: Self::I, b: Self::I) -> Self::I {
        each!(vandq_s32, a, b)
    }
    #[inline(always)]
    fn ior(self, a: Self::I, b: Self::I) -> Self::I {
        each!(vorrq_s32, a, b)
    }
    #[inline(always)]
    fn shr(self, a: Self::I, n: u32) -> Self::I {
        let by = run!(vdupq_n_s32(-(n as i32)));
        four!(|i| vreinterpretq_s32_u32(vshlq_u32(vreinterpretq_u32_s32(a[i]), by)))
    }
    #[inline(always)]
    fn shl(self, a: Self::I, n: u32) -> Self::I {
        let by = run!(vdupq_n_s32(n as i32));
        four!(|i| vshlq_s32(a[i], by))
    }
    #[inline(always)]
    fn to_f32(self, a: Self::I) -> Self::F {
        each!(vcvtq_f32_s32, a)
    }
    #[inline(always)]
    fn to_i32(self, a: Self::F) -> Self::I {
        each!(vcvtnq_s32_f32, a)
    }
    #[inline(always)]
    fn as_bits(self, a: Self::F) -> Self::I {
        each!(vreinterpretq_s32_f32, a)
    }
    #[inline(always)]
    fn as_float(self, a: Self::I) -> Self::F {
        each!(vreinterpretq_f32_s32, a)
    }

    #[inline(always)]
    fn store_bytes(self, v: Self::I, p: &mut [u8; 16]) {
        run!({
            let low = vcombine_s16(vmovn_s32(v[0]), vmovn_s32(v[1]));
            let high = vcombine_s16(vmovn_s32(v[2]), vmovn_s32(v[3]));
            vst1q_s8(p.as_mut_ptr().cast(), vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
        })
    }

    const UNSIGNED: bool = I8MM;
    #[inline(always)]
    fn dot_nibbles(self, acc: Self::I, w: Self::I, a: Self::I) -> Self::I {
        four!(|i| dot(acc[i], w[i], a[i]))
    }
    #[inline(always)]
    fn dot_bytes(self, acc: Self::I, w: Self::I, a: Self::I) -> Self::I {
        if I8MM {
            return four!(|i| dot_unsigned(acc[i], w[i], a[i]));
        }
        four!(|i| dot(acc[i], veorq_s32(w[i], vdupq_n_s32(0x8080_8080_u32 as i32)), a[i]))
    }

    const PAIRS: bool = I8MM;
    #[inline(always)]
    fn pair_weights(self, w: [Self::I; 2]) -> [Self::I; 2] {
        if !I8MM {
            return w;
        }
        // Rows 4i and 4i + 1 with eight columns each, then 4i + 2 and 4i + 3.
        [four!(|i| vzip1q_s32(w[0][i], w[1][i])), four!(|i| vzip2q_s32(w[0][i], w[1][i]))]
    }
    #[inline(always)]
    fn pair_splat(self, high: i32, low: i32) -> [Self::I; 2] {
        let (high, low) = (self.isplat(high), self.isplat(low));
        if I8MM { [each!(vzip1q_s32, high, low); 2] } else { [high, low] }
    }
    #[inline(always)]
    fn dot_pair(self, acc: [Self::I; 2], w: [Self::I; 2], high: &[u8; 8], low: &[u8; 8]) -> [Self::I; 2] {
        debug_assert!(I8MM, "without products of matrices, there are no pairs");
        let x = run!(vcombine_u8(vld1_u8(high.as_ptr()), vld1_u8(low.as_ptr())));
        [
            four!(|i| product(acc[0][i], w[0][i], vreinterpretq_s32_u8(x))),
            four!(|i| product(acc[1][i], w[1][i], vreinterpretq_s32_u8(x))),
        ]
    }
    #[inline(always)]
    fn pair_split(self, acc: [Self::I; 2]) -> [Self::I; 2] {
        if !I8MM {
            return acc;
        }
        [four!(|i| vuzp1q_s32(acc[0][i], acc[1][i])), four!(|i| vuzp2q_s32(acc[0][i], acc[1][i]))]
    }

    #[inline(always)]
    fn sum(self, a: Self::F) -> f32 {
        run!({
            let four = vaddq_f32(vaddq_f32(a[0], a[2]), vaddq_f32(a[1], a[3]));
            let two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
            vget_lane_f32::<0>(two) + vget_lane_f32::<1>(two)
        })
    }
    #[inline(always)]
    fn max_lane(self, a: Self::F) -> f32 {
        run!(vmaxvq_f32(vmaxq_f32(vmaxq_f32(a[0], a[2]), vmaxq_f32(a[1], a[3]))))
    }

    #[inline(always)]
    fn lookup16(self, table: Self::F, i: Self::I) -> Self::F {
        // The table as 64 bytes: index 4i, 4i + 1, 4i + 2, 4i + 3 for each lane.
        let bytes = run!(uint8x16x4_t(
            vreinterpretq_u8_f32(table[0]),
            vreinterpretq_u8_f32(table[1]),
            vreinterpretq_u8_f32(table[2]),
            vreinterpretq_u8_f32(table[3]),
        ));
        four!(|l| {
            let low = vandq_s32(i[l], vdupq_n_s32(15));
            let at = vmlaq_s32(vdupq_n_s32(0x0302_0100), low, vdupq_n_s32(0x0404_0404));
            vreinterpretq_f32_u8(vqtbl4q_u8(bytes, vreinterpretq_u8_s32(at)))
        })
    }
    #[inline(always)]
    fn lookup_bytes(self, table: Self::I, i: Self::I) -> Self::I {
        four!(|l| vreinterpretq_s32_u8(vqtbl1q_u8(vreinterpretq_u8_s32(table[l]), vreinterpretq_u8_s32(i[l]))))
    }
    #[inline(always)]
    fn lookup_bytes64(self, table: Self::I, i: Self::I) -> Self::I {
        let t = each!(vreinterpretq_u8_s32, table);
        let t = uint8x16x4_t(t[0], t[1], t[2], t[3]);
        four!(|l| {
            let i = vandq_u8(vreinterpretq_u8_s32(i[l]), vdupq_n_u8(63));
            vreinterpretq_s32_u8(vqtbl4q_u8(t, i))
        })
    }
    #[inline(always)]
    fn gather(self, table: &[[u8; 4]], i: Self::I) -> Self::F {
        assert!(table.len().is_power_of_two(), "a table of {} entries", table.len());
        let mut at = [0; 16];
        self.istore(i, &mut at);
        let mut values = [0.0; 16];
        for l in 0..16 {
            values[l] = f32::from_le_bytes(table[at[l] as usize & (table.len() - 1)]);
        }
        self.load(&values)
    }
    #[inline(always)]
    fn transpose(self, r: [Self::F; 16]) -> [Self::F; 16] {
        let mut out = r;
        for top in 0..4 {
            for left in 0..4 {
                let turned = self.transpose4([
                    r[4 * top][left],
                    r[4 * top + 1][left],
                    r[4 * top + 2][left],
                    r[4 * top + 3][left],
                ]);
                for i in 0..4 {
                    out[4 * left + i][top] = turned[i];
                }
            }
        }
        out
    }
    #[inline(always)]
    fn prefetch<T>(self, p: &[T], ahead: usize) {
        let at = p.as_ptr().cast::<u8>().wrapping_add(ahead);
        // SAFETY: a prefetch never faults, wherever it points, and changes nothing that a program can see.
        unsafe {
            std::arch::asm!("prfm pldl1keep, [{at}]", at = in(reg) at, options(nostack, preserves_flags, readonly))
        }
    }
}

impl<const I8MM: bool> Neon<I8MM> {
    #[inline(always)]
    fn istore(self, v: [int32x4_t; 4], p: &mut [i32; 16]) {
        let p = p.as_mut_ptr();
        for (i, v) in v.into_iter().enumerate() {
            run!(vst1q_s32(p.add(4 * i), v));
        }
    }

    #[inline(always)]
    fn transpose4(self, r: [float32x4_t; 4]) -> [float32x4_t; 4] {
        run!({
            let (a, b) = (vtrn1q_f32(r[0], r[1]), vtrn2q_f32(r[0], r[1]));
            let (c, d) = (vtrn1q_f32(r[2], r[3]), vtrn2q_f32(r[2], r[3]));
            [
                vreinterpretq_f32_f64(vtrn1q_f64(vreinterpretq_f64_f32(a), vreinterpretq_f64_f32(c))),
                vreinterpretq_f32_f64(vtrn1q_f64(vreinterpretq_f64_f32(b), vreinterpretq_f64_f32(d))),
                vreinterpretq_f32_f64(vtrn2q_f64(vreinterpretq_f64_f32(a), vreinterpretq_f64_f32(c))),
                vreinterpretq_f32_f64(vtrn2q_f64(vreinterpretq_f64_f32(b), vreinterpretq_f64_f32(d))),
            ]
        })
    }
}

/// f16 to f32. The intrinsic is younger than our oldest compiler; the instruction is in every AArch64.
#[inline(always)]
fn widen(v: uint16x4_t) -> float32x4_t {
    let out: float32x4_t;
    // SAFETY: a conversion between registers, in the base instruction set.
    unsafe {
        std::arch::asm!("fcvtl {out:v}.4s, {v:v}.4h", out = lateout(vreg) out, v = in(vreg) v,
            options(pure, nomem, nostack, preserves_flags));
    }
    out
}

/// f32 to f16, to nearest even (the rounding mode that Rust programs run in).
#[inline(always)]
fn narrow(v: float32x4_t) -> uint16x4_t {
    let out: uint16x4_t;
    // SAFETY: a conversion between registers, in the base instruction set.
    unsafe {
        std::arch::asm!("fcvtn {out:v}.4h, {v:v}.4s", out = lateout(vreg) out, v = in(vreg) v,
            options(pure, nomem, nostack, preserves_flags));
    }
    out
}

/// The dot product of four signed bytes in each lane, added. The intrinsic is not stable yet.
///
/// # Safety
///
/// The processor has the dot product instructions.
#[inline(always)]
unsafe fn dot(acc: int32x4_t, w: int32x4_t, a: int32x4_t) -> int32x4_t {
    let mut out = acc;
    // SAFETY: the caller proves the dot product instructions; registers only.
    unsafe {
        std::arch::asm!(".arch_extension dotprod", "sdot {out:v}.4s, {w:v}.16b, {a:v}.16b",
            out = inout(vreg) out, w = in(vreg) w, a = in(vreg) a, options(pure, nomem, nostack, preserves_flags));
    }
    out
}

/// The dot product of four unsigned bytes `w` and four signed bytes `a` in each lane, added. The intrinsic is not stable yet.
///
/// # Safety
///
/// The processor has the instructions of `I8MM`.
#[inline(always)]
unsafe fn dot_unsigned(acc: int32x4_t, w: int32x4_t, a: int32x4_t) -> int32x4_t {
    let mut out = acc;
    // SAFETY: the caller proves the instructions; registers only.
    unsafe {
        std::arch::asm!(".arch_extension i8mm", "usdot {out:v}.4s, {w:v}.16b, {a:v}.16b",
            out = inout(vreg) out, w = in(vreg) w, a = in(vreg) a, options(pure, nomem, nostack, preserves_flags));
    }
    out
}

/// Lane `2r + c`: the dot product of eight unsigned bytes `r` of `w` with eight signed bytes `c` of `x`, added. The intrinsic is
/// not stable yet.
///
/// # Safety
///
/// The processor has the instructions of `I8MM`.
#[inline(always)]
unsafe fn product(acc: int32x4_t, w: int32x4_t, x: int32x4_t) -> int32x4_t {
    let mut out = acc;
    // SAFETY: the caller proves the instructions; registers only.
    unsafe {
        std::arch::asm!(".arch_extension i8mm", "usmmla {out:v}.4s, {w:v}.16b, {x:v}.16b",
            out = inout(vreg) out, w = in(vreg) w, x = in(vreg) x, options(pure, nomem, nostack, preserves_flags));
    }
    out
}
