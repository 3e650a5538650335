//! Whether tiles may be used.

#![allow(unsafe_code, reason = "asks the processor and the kernel")]

use super::Avx512;

/// Proof that AMX-TILE, AMX-INT8 and AMX-BF16 may run, with all of [`Avx512`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amx(Avx512, Avx512<true>);

impl Amx {
    /// The token, when this processor has all the instructions it stands for, and the kernel grants the process tiles.
    pub fn detect() -> Option<Self> {
        #[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
        {
            static GRANTED: std::sync::LazyLock<bool> = std::sync::LazyLock::new(granted);
            if let (Some(avx512), Some(vbmi)) = (Avx512::detect(), Avx512::detect())
                && *GRANTED
            {
                return Some(Self(avx512, vbmi));
            }
        }
        None
    }

    /// What it proves about vectors.
    #[inline(always)]
    pub fn avx512(self) -> Avx512 {
        self.0
    }

    /// What it proves about vectors, with tables of 64 bytes.
    #[inline(always)]
    pub fn vbmi(self) -> Avx512<true> {
        self.1
    }
}

/// Asks the processor for AMX-BF16, AMX-TILE and AMX-INT8 (leaf 7: bits 22, 24 and 25 of EDX; Intel's manual, volume 2, CPUID), then the
/// kernel for the 8 KB of state that tiles need in each thread, which it gives a process that asks
/// (<https://docs.kernel.org/arch/x86/xstate.html>).
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
fn granted() -> bool {
    use std::arch::asm;
    const ARCH_PRCTL: i64 = 158;
    const ARCH_REQ_XCOMP_PERM: u64 = 0x1023;
    const XFEATURE_XTILEDATA: u64 = 18;
    let features: u32;
    // SAFETY: CPUID with leaf 7, which every processor with AVX2 has; RBX, which the compiler keeps, is restored.
    unsafe {
        asm!("mov {kept}, rbx", "cpuid", "mov rbx, {kept}", kept = out(reg) _, inout("eax") 7 => _, inout("ecx") 0 => _,
            out("edx") features, options(nostack, preserves_flags));
    }
    if features >> 22 & 0b1101 != 0b1101 {
        return false;
    }
    let refused: i64;
    // SAFETY: a system call that touches no memory of the process.
    unsafe {
        asm!("syscall", inlateout("rax") ARCH_PRCTL => refused, in("rdi") ARCH_REQ_XCOMP_PERM, in("rsi") XFEATURE_XTILEDATA,
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    refused == 0
}
