//! Elements of tensor literals: from packed bytes to words, and from words to packed bytes.

use std::fmt;

use half::{bf16, f16};

use super::number::{self, Hex};
use crate::constant::{TensorConst, int_range};
use crate::types::DType;

/// Writes element `index` of a numeric tensor.
pub(super) fn write(t: &TensorConst, index: usize, f: &mut dyn fmt::Write) -> fmt::Result {
    let dtype = t.ty.dtype;
    if dtype == DType::Bool {
        return match t.bytes[index] {
            0 => f.write_str("false"),
            1 => f.write_str("true"),
            other => write!(f, "bits({other:#x})"),
        };
    }
    if !dtype.is_float() {
        let value = t.ints(index..index + 1).next().expect("one element");
        return if dtype == DType::U64 { write!(f, "{}", value as u64) } else { write!(f, "{value}") };
    }
    let bytes = dtype.bits() / 8;
    let raw = t.bytes[index * bytes..(index + 1) * bytes].iter().rev().fold(0, |bits, &b| bits << 8 | u64::from(b));
    let value = float(dtype, raw);
    if value.is_nan() {
        if raw == nan(dtype) { f.write_str("nan") } else { write!(f, "bits({raw:#x})") }
    } else if value.is_infinite() {
        f.write_str(if value > 0.0 { "inf" } else { "-inf" })
    } else {
        write!(f, "{}", Hex(value))
    }
}

/// The number that the bits of a floating element mean.
fn float(dtype: DType, raw: u64) -> f64 {
    match dtype {
        DType::F16 => f16::from_bits(raw as u16).to_f64(),
        DType::BF16 => bf16::from_bits(raw as u16).to_f64(),
        DType::F32 => f64::from(f32::from_bits(raw as u32)),
        DType::F64 => f64::from_bits(raw),
        DType::F8E4M3FN => f64::from(crate::constant::f8_e4m3fn(raw as u8)),
        DType::F8E5M2 => f16::from_bits((raw as u16) << 8).to_f64(),
        other => unreachable!("{other} is no floating type"),
    }
}

/// The bits that `nan` stands for.
fn nan(dtype: DType) -> u64 {
    match dtype {
        DType::F16 => 0x7e00,
        DType::BF16 => 0x7fc0,
        DType::F32 => 0x7fc0_0000,
        DType::F64 => 0x7ff8_0000_0000_0000,
        DType::F8E4M3FN => 0x7f,
        DType::F8E5M2 => 0x7e,
        other => unreachable!("{other} is no floating type"),
    }
}

/// The bits of the element that `text` spells; `None` if it is no element of that type.
fn bits(dtype: DType, text: &str) -> Option<u64> {
    if dtype == DType::Bool {
        return match text {
            "true" => Some(1),
            "false" => Some(0),
            _ => None,
        };
    }
    if !dtype.is_float() {
        let value: i128 = text.parse().ok()?;
        let (low, high) = int_range(dtype);
        return (low..=high).contains(&value).then_some(value as u64);
    }
    let value = number::parse(text)?;
    if value.is_nan() {
        let sign = u64::from(value.is_sign_negative()) << (dtype.bits() - 1);
        return Some(nan(dtype) | sign);
    }
    let raw = match dtype {
        DType::F16 => u64::from(f16::from_f64(value).to_bits()),
        DType::BF16 => u64::from(bf16::from_f64(value).to_bits()),
        DType::F32 => u64::from((value as f32).to_bits()),
        DType::F64 => value.to_bits(),
        // Few enough to try them all.
        _ => (0..256u64).find(|&raw| float(dtype, raw).to_bits() == value.to_bits())?,
    };
    // A finite number too large for the type is an error, not an infinity.
    (value.is_infinite() || float(dtype, raw).is_finite()).then_some(raw)
}

/// Packs elements as they are read.
pub(super) struct Packer {
    dtype: DType,
    bytes: Vec<u8>,
    count: usize,
}

impl Packer {
    pub(super) fn new(dtype: DType) -> Self {
        Self { dtype, bytes: Vec::new(), count: 0 }
    }

    pub(super) fn dtype(&self) -> DType {
        self.dtype
    }

    /// Adds the element that `text` spells; whether it is one.
    pub(super) fn push(&mut self, text: &str) -> bool {
        let mask = if self.dtype.bits() == 64 { !0 } else { (1 << self.dtype.bits()) - 1 };
        bits(self.dtype, text).is_some_and(|raw| self.push_bits(raw & mask))
    }

    /// Adds the element of these bits; whether the type has such.
    pub(super) fn push_bits(&mut self, raw: u64) -> bool {
        let width = self.dtype.bits();
        if width < 64 && raw >> width != 0 {
            return false;
        }
        if width >= 8 {
            self.bytes.extend_from_slice(&raw.to_le_bytes()[..width / 8]);
        } else {
            for bit in 0..width {
                let at = self.count * width + bit;
                if at / 8 == self.bytes.len() {
                    self.bytes.push(0);
                }
                self.bytes[at / 8] |= ((raw >> bit & 1) as u8) << (at % 8);
            }
        }
        self.count += 1;
        true
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::StaticType;

    /// Every bit pattern of the narrow types, and some of the wide ones.
    #[test]
    fn every_element_round_trips_bit_for_bit() {
        for dtype in DType::ALL.into_iter().filter(|d| *d != DType::String) {
            let width = dtype.bits();
            let patterns: Vec<u64> = match width {
                1..=8 => (0..1 << width).collect(),
                16 => (0..1 << 16).collect(),
                _ => (0..64).flat_map(|i| [1u64 << i, !0 >> i, (0x7ff8_0000_0000_0001u64).rotate_left(i)]).collect(),
            };
            let mut all = Packer::new(dtype);
            let mask = if width == 64 { !0 } else { (1 << width) - 1 };
            patterns.iter().for_each(|&p| assert!(all.push_bits(p & mask)));
            let t = TensorConst::new(StaticType::new(dtype, &[patterns.len()]), all.finish().into()).unwrap();
            let mut again = Packer::new(dtype);
            for i in 0..patterns.len() {
                let mut text = String::new();
                write(&t, i, &mut text).unwrap();
                let fits = match text.strip_prefix("bits(0x").and_then(|t| t.strip_suffix(')')) {
                    Some(raw) => again.push_bits(u64::from_str_radix(raw, 16).unwrap()),
                    None => again.push(&text),
                };
                assert!(fits, "{dtype} {text}");
            }
            assert!(again.finish() == t.bytes, "{dtype}");
        }
    }

    #[test]
    fn elements_that_do_not_fit_are_refused() {
        for (dtype, text) in [
            (DType::I8, "128"),
            (DType::U4, "16"),
            (DType::U8, "-1"),
            (DType::F16, "1e6"),
            (DType::I32, "1.5"),
            (DType::Bool, "1"),
            (DType::F8E4M3FN, "0.3"),
            (DType::F32, "true"),
        ] {
            assert!(!Packer::new(dtype).push(text), "{dtype} {text}");
        }
        assert!(!Packer::new(DType::U4).push_bits(16));
        assert!(Packer::new(DType::F16).push("-inf"));
    }
}
