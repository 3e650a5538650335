//! Between element types: slices of f16, bf16, int8 and f32.
//!
//! To a narrower float rounds to nearest even, overflow gives infinity, NaN stays NaN.

use crate::isa::{Isa, Kernel};
use crate::lanes::{Lanes, store_part};

/// f16 bits to f32. The lengths are equal.
pub fn f16_to_f32(isa: Isa, from: &[u16], to: &mut [f32]) {
    assert_eq!(from.len(), to.len(), "f16_to_f32: lengths differ");
    isa.run(FromF16 { from, to });
}

/// f32 to f16 bits. The lengths are equal.
pub fn f32_to_f16(isa: Isa, from: &[f32], to: &mut [u16]) {
    assert_eq!(from.len(), to.len(), "f32_to_f16: lengths differ");
    isa.run(ToF16 { from, to });
}

/// bf16 bits to f32. The lengths are equal.
pub fn bf16_to_f32(from: &[u16], to: &mut [f32]) {
    assert_eq!(from.len(), to.len(), "bf16_to_f32: lengths differ");
    for (to, &from) in to.iter_mut().zip(from) {
        *to = f32::from_bits(u32::from(from) << 16);
    }
}

/// f32 to bf16 bits. The lengths are equal.
pub fn f32_to_bf16(from: &[f32], to: &mut [u16]) {
    assert_eq!(from.len(), to.len(), "f32_to_bf16: lengths differ");
    for (to, &from) in to.iter_mut().zip(from) {
        let bits = from.to_bits();
        let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
        let quiet = (bits >> 16) | 0x40;
        *to = if from.is_nan() { quiet } else { rounded } as u16;
    }
}

/// int8 to f32. The lengths are equal.
pub fn i8_to_f32(from: &[i8], to: &mut [f32]) {
    assert_eq!(from.len(), to.len(), "i8_to_f32: lengths differ");
    for (to, &from) in to.iter_mut().zip(from) {
        *to = f32::from(from);
    }
}

/// uint8 to f32. The lengths are equal.
pub fn u8_to_f32(from: &[u8], to: &mut [f32]) {
    assert_eq!(from.len(), to.len(), "u8_to_f32: lengths differ");
    for (to, &from) in to.iter_mut().zip(from) {
        *to = f32::from(from);
    }
}

struct FromF16<'a> {
    from: &'a [u16],
    to: &'a mut [f32],
}

impl Kernel for FromF16<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Lanes>(self, s: S) {
        let (from, rest) = self.from.as_chunks::<16>();
        let (to, to_rest) = self.to.as_chunks_mut::<16>();
        for (from, to) in from.iter().zip(to) {
            s.store(s.load_f16(from), to);
        }
        let mut last = [0; 16];
        last[..rest.len()].copy_from_slice(rest);
        store_part(s, s.load_f16(&last), to_rest);
    }
}

struct ToF16<'a> {
    from: &'a [f32],
    to: &'a mut [u16],
}

impl Kernel for ToF16<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Lanes>(self, s: S) {
        let (from, rest) = self.from.as_chunks::<16>();
        let (to, to_rest) = self.to.as_chunks_mut::<16>();
        for (from, to) in from.iter().zip(to) {
            s.store_f16(s.load(from), to);
        }
        let mut last = [0; 16];
        s.store_f16(crate::lanes::load_part(s, rest, 0.0), &mut last);
        to_rest.copy_from_slice(&last[..to_rest.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::{bf16, f16};

    #[test]
    fn every_f16_widens_as_the_definition_says() {
        let all: Vec<u16> = (0..=u16::MAX).chain([1, 2, 3]).collect();
        for isa in Isa::available() {
            let mut out = vec![0.0; all.len()];
            f16_to_f32(isa, &all, &mut out);
            for (&bits, got) in all.iter().zip(out) {
                let want = f16::from_bits(bits).to_f32();
                assert!(got == want || (got.is_nan() && want.is_nan()), "{} {bits:#x}: {got} != {want}", isa.name());
            }
        }
    }

    #[test]
    fn narrowing_rounds_to_nearest_even() {
        // Every f16, its neighbours in f32, and the midpoints between two f16.
        let mut values = vec![f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 65519.996, 65520.0, -65520.0, 1e-8, f32::MAX];
        for bits in 0..0x7c00_u16 {
            let (low, high) = (f16::from_bits(bits).to_f32(), f16::from_bits(bits + 1).to_f32());
            let middle = (low + high) / 2.0;
            values.extend([low, middle, middle.next_up(), middle.next_down(), -low, -middle]);
        }
        for isa in Isa::available() {
            let mut out = vec![0; values.len()];
            f32_to_f16(isa, &values, &mut out);
            for (&value, got) in values.iter().zip(out) {
                let want = f16::from_f32(value);
                let got = f16::from_bits(got);
                assert!(
                    got.to_bits() == want.to_bits() || (got.is_nan() && value.is_nan()),
                    "{} {value}: {got} != {want}",
                    isa.name()
                );
            }
        }
    }

    #[test]
    fn bf16_agrees_with_half() {
        let mut values = vec![f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN_POSITIVE, -0.0];
        values.extend((0..100_000_u32).map(|i| f32::from_bits(i.wrapping_mul(2_654_435_761))));
        let mut out = vec![0; values.len()];
        f32_to_bf16(&values, &mut out);
        let mut back = vec![0.0; values.len()];
        bf16_to_f32(&out, &mut back);
        for ((value, got), back) in values.into_iter().zip(out).zip(back) {
            let want = bf16::from_f32(value);
            assert!(got == want.to_bits() || (value.is_nan() && bf16::from_bits(got).is_nan()), "{value}");
            assert!(back == want.to_f32() || back.is_nan() && value.is_nan());
        }
    }
}
