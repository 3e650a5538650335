//! Which instructions may run: found once at run time, carried as a value.
//!
//! [`Avx512`], [`Avx2`] and [`Neon`] can only be made by detection, so holding one proves that its instructions exist.

#![allow(unsafe_code, reason = "enters functions compiled for a detected instruction set")]

mod amx;

pub use amx::Amx;

use crate::lanes::{Lanes, Scalar};

/// Proof that AVX-512 F, BW, DQ, VL and VNNI (with AVX2, FMA and F16C) may run, and with `VBMI` AVX-512 VBMI and GFNI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Avx512<const VBMI: bool = false>(());

/// Proof that AVX2, FMA and F16C may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Avx2(());

/// Proof that AArch64 Advanced SIMD with the int8 dot product may run, and with `I8MM` the products of int8 matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neon<const I8MM: bool = false>(());

/// The instruction set that a kernel is asked to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// Plain Rust. Always there; the definition that the others are tested against.
    Scalar,
    /// 256-bit vectors.
    Avx2(Avx2),
    /// 512-bit vectors.
    Avx512(Avx512),
    /// 512-bit vectors, and tables of 64 bytes.
    Vbmi(Avx512<true>),
    /// The same, and tiles for [`crate::linear::tiles`].
    Amx(Amx),
    /// 128-bit vectors.
    Neon(Neon),
    /// 128-bit vectors, and products of int8 matrices of two by eight.
    I8mm(Neon<true>),
}

impl<const VBMI: bool> Avx512<VBMI> {
    /// The token, when this processor and operating system have all the instructions it stands for.
    pub fn detect() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        if Avx2::detect().is_some()
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vnni")
            && (!VBMI || is_x86_feature_detected!("avx512vbmi") && is_x86_feature_detected!("gfni"))
        {
            return Some(Self(()));
        }
        None
    }
}

impl Avx2 {
    /// The token, when this processor and operating system have all the instructions it stands for.
    pub fn detect() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c") {
            return Some(Self(()));
        }
        None
    }
}

impl<const I8MM: bool> Neon<I8MM> {
    /// The token, when this processor and operating system have all the instructions it stands for.
    pub fn detect() -> Option<Self> {
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon")
            && std::arch::is_aarch64_feature_detected!("dotprod")
            && (!I8MM || std::arch::is_aarch64_feature_detected!("i8mm"))
        {
            return Some(Self(()));
        }
        None
    }
}

impl Isa {
    /// Every instruction set that this machine has, the plainest first, the fastest last.
    pub fn available() -> impl DoubleEndedIterator<Item = Self> {
        let all = [
            Some(Self::Scalar),
            Neon::detect().map(Self::Neon),
            Neon::detect().map(Self::I8mm),
            Avx2::detect().map(Self::Avx2),
            Avx512::detect().map(Self::Avx512),
            Avx512::detect().map(Self::Vbmi),
            Amx::detect().map(Self::Amx),
        ];
        all.into_iter().flatten()
    }

    /// The fastest instruction set that this machine has, or the one named by the environment variable `ANEMONE_ISA`
    /// (`scalar`, `neon`, `i8mm`, `avx2`, `avx512`, `vbmi`, `amx`) if the machine has that one.
    pub fn detect() -> Self {
        let wanted = std::env::var("ANEMONE_ISA").ok();
        let named = wanted.and_then(|name| Self::available().find(|isa| isa.name() == name));
        named.or_else(|| Self::available().next_back()).unwrap_or(Self::Scalar)
    }

    /// Its name in lower case, as `ANEMONE_ISA` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Avx2(_) => "avx2",
            Self::Avx512(_) => "avx512",
            Self::Vbmi(_) => "vbmi",
            Self::Amx(_) => "amx",
            Self::Neon(_) => "neon",
            Self::I8mm(_) => "i8mm",
        }
    }

    /// Runs `kernel` with its lanes compiled for this instruction set.
    #[inline]
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Out {
        match self {
            Self::Scalar => kernel.run(Scalar),
            // SAFETY: the token proves that the features of `run_avx512` are there.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(token) => unsafe { run_avx512(token, kernel) },
            // SAFETY: the token proves that the features of `run_vbmi` are there.
            #[cfg(target_arch = "x86_64")]
            Self::Vbmi(token) => unsafe { run_vbmi(token, kernel) },
            // SAFETY: the token proves that the features of `run_vbmi` are there.
            #[cfg(target_arch = "x86_64")]
            Self::Amx(token) => unsafe { run_vbmi(token.vbmi(), kernel) },
            // SAFETY: the token proves that the features of `run_avx2` are there.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(token) => unsafe { run_avx2(token, kernel) },
            // SAFETY: the token proves that the features of `run_neon` are there.
            #[cfg(target_arch = "aarch64")]
            Self::Neon(token) => unsafe { run_neon(token, kernel) },
            // SAFETY: the token proves that the features of `run_i8mm` are there.
            #[cfg(target_arch = "aarch64")]
            Self::I8mm(token) => unsafe { run_i8mm(token, kernel) },
            #[allow(unreachable_patterns, reason = "the tokens of other architectures cannot be made here")]
            _ => kernel.run(Scalar),
        }
    }
}

/// A kernel with its arguments, to be compiled for each instruction set.
///
/// `run`, and all that it calls with lanes, must be `#[inline(always)]`: only code inlined into the function that carries
/// the target features is compiled with them.
pub(crate) trait Kernel {
    type Out;
    fn run<S: Lanes>(self, s: S) -> Self::Out;
}

/// A kernel that uses tiles; inlined as a [`Kernel`] is.
#[cfg(target_arch = "x86_64")]
pub(crate) trait TileKernel {
    fn run(self, amx: Amx);
}

#[cfg(target_arch = "x86_64")]
impl Amx {
    /// Runs `kernel`, compiled for what the token proves.
    pub(crate) fn run<K: TileKernel>(self, kernel: K) {
        // SAFETY: the token proves the features.
        unsafe { run_amx(self, kernel) }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vbmi,avx2,fma,f16c")]
fn run_amx<K: TileKernel>(token: Amx, kernel: K) {
    kernel.run(token);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")]
fn run_avx512<K: Kernel>(token: Avx512, kernel: K) -> K::Out {
    kernel.run(token)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vbmi,gfni,avx2,fma,f16c")]
fn run_vbmi<K: Kernel>(token: Avx512<true>, kernel: K) -> K::Out {
    kernel.run(token)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn run_avx2<K: Kernel>(token: Avx2, kernel: K) -> K::Out {
    kernel.run(token)
}

#[cfg(target_arch = "aarch64")]
#[target_feature(enable = "neon,dotprod")]
fn run_neon<K: Kernel>(token: Neon, kernel: K) -> K::Out {
    kernel.run(token)
}

#[cfg(target_arch = "aarch64")]
#[target_feature(enable = "neon,dotprod,i8mm")]
fn run_i8mm<K: Kernel>(token: Neon<true>, kernel: K) -> K::Out {
    kernel.run(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expected_instruction_set_is_exercised() {
        let names: Vec<_> = Isa::available().map(Isa::name).collect();
        assert_eq!(names.first(), Some(&"scalar"));
        if let Ok(expected) = std::env::var("EXPECT_ISA") {
            for name in expected.split(',') {
                assert!(names.contains(&name), "EXPECT_ISA asks for {name}, this machine has {names:?}");
            }
        }
    }

    #[test]
    fn detect_gives_one_that_is_available() {
        assert!(Isa::available().any(|isa| isa == Isa::detect()));
    }
}
