//! Products of tiles of bfloat16 (AMX-BF16), for numbers of two halves.

#![allow(unsafe_code, reason = "tile instructions: a `Unit` proves that they may run")]

use super::{HEIGHT, Unit};
use std::arch::asm;

/// A line of a tile: 32 numbers in bfloat16, two in each lane.
pub(crate) type Pairs = [f32; 16];
/// 32 columns of sixteen rows: the high halves of their numbers, then the low ones.
pub(crate) type Halves = [[Pairs; HEIGHT]; 2];

impl Unit {
    /// The products of twice sixteen rows with twice sixteen columns, `Σ low · high + high · high + high · low` over all of
    /// `a` and `b`: to 32 lines of 32 numbers, `stride` apart in `out`.
    #[inline(always)]
    pub(crate) fn halves(&self, a: [&[Halves]; 2], b: [&[Halves]; 2], out: &mut [f32], stride: usize) {
        let steps = a[0].len();
        let alike = a[1].len() == steps && b.iter().all(|b| b.len() == steps);
        assert!(steps > 0 && alike, "tiles: operands of {steps} and other numbers of steps");
        assert!(stride >= 32 && out.len() >= (2 * HEIGHT - 1) * stride + 32, "tiles: {} for 32 lines", out.len());
        // SAFETY: a `Unit` exists, so tiles are set up, and there is AMX-BF16; every step reads 2 KB of each operand; the last
        // line of the results ends within `out`, as checked. Tile registers belong to nobody else until release.
        unsafe {
            asm!(
                "tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3",
                "2:",
                "tileloadd tmm6, [{b0} + {line}*1]",
                "tileloadd tmm4, [{a0} + {line}*1 + 1024]",
                "tileloadd tmm7, [{b1} + {line}*1]",
                "tileloadd tmm5, [{a1} + {line}*1 + 1024]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "tileloadd tmm4, [{a0} + {line}*1]",
                "tileloadd tmm5, [{a1} + {line}*1]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "tileloadd tmm6, [{b0} + {line}*1 + 1024]",
                "tileloadd tmm7, [{b1} + {line}*1 + 1024]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "add {a0}, 2048", "add {a1}, 2048", "add {b0}, 2048", "add {b1}, 2048",
                "dec {steps}",
                "jnz 2b",
                "tilestored [{upper} + {stride}*1], tmm0",
                "tilestored [{upper} + {stride}*1 + 64], tmm1",
                "tilestored [{lower} + {stride}*1], tmm2",
                "tilestored [{lower} + {stride}*1 + 64], tmm3",
                a0 = inout(reg) a[0].as_ptr() => _, a1 = inout(reg) a[1].as_ptr() => _,
                b0 = inout(reg) b[0].as_ptr() => _, b1 = inout(reg) b[1].as_ptr() => _,
                steps = inout(reg) steps => _, line = in(reg) 64_usize, stride = in(reg) 4 * stride,
                upper = in(reg) out.as_mut_ptr(), lower = in(reg) out.as_mut_ptr().wrapping_add(HEIGHT * stride),
                options(nostack),
            );
        }
    }
}
