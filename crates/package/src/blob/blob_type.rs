//! Element types of weight files.

use std::fmt;

/// Element type of a blob. The codes are those of weight files; MIL's own
/// [`DataType`](crate::proto::mil::DataType) has others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
#[allow(missing_docs, reason = "the variants are the element types' own names")]
pub enum BlobType {
    Float16 = 1,
    Float32 = 2,
    UInt8 = 3,
    Int8 = 4,
    BFloat16 = 5,
    Int16 = 6,
    UInt16 = 7,
    Int4 = 8,
    UInt1 = 9,
    UInt2 = 10,
    UInt4 = 11,
    UInt3 = 12,
    UInt6 = 13,
    Int32 = 14,
    UInt32 = 15,
    Float8E4M3FN = 16,
    Float8E5M2 = 17,
}

impl BlobType {
    /// Every type, in order of its code, from 1 on.
    pub const ALL: [Self; 17] = [
        Self::Float16,
        Self::Float32,
        Self::UInt8,
        Self::Int8,
        Self::BFloat16,
        Self::Int16,
        Self::UInt16,
        Self::Int4,
        Self::UInt1,
        Self::UInt2,
        Self::UInt4,
        Self::UInt3,
        Self::UInt6,
        Self::Int32,
        Self::UInt32,
        Self::Float8E4M3FN,
        Self::Float8E5M2,
    ];

    /// The type of this code.
    #[must_use]
    pub fn from_code(code: u32) -> Option<Self> {
        Self::ALL.get(usize::try_from(code).ok()?.checked_sub(1)?).copied()
    }

    /// The code in weight files.
    #[must_use]
    pub fn code(self) -> u32 {
        self as u32
    }

    /// Bits per element.
    #[must_use]
    pub fn bits(self) -> u64 {
        match self {
            Self::UInt1 => 1,
            Self::UInt2 => 2,
            Self::UInt3 => 3,
            Self::Int4 | Self::UInt4 => 4,
            Self::UInt6 => 6,
            Self::Int8 | Self::UInt8 | Self::Float8E4M3FN | Self::Float8E5M2 => 8,
            Self::Float16 | Self::BFloat16 | Self::Int16 | Self::UInt16 => 16,
            Self::Float32 | Self::Int32 | Self::UInt32 => 32,
        }
    }

    /// How many bytes `elements` take, and how many bits of the last byte they leave unused; `None` if that overflows.
    #[must_use]
    pub fn bytes_for(self, elements: u64) -> Option<(u64, u64)> {
        let bits = elements.checked_mul(self.bits())?;
        Some((bits.div_ceil(8), bits.wrapping_neg() % 8))
    }

    /// Whether `length` bytes less `padding_bits` are a whole number of elements with less than a byte of padding.
    pub(crate) fn divides(self, length: u64, padding_bits: u64) -> bool {
        let bits = length.checked_mul(8).and_then(|bits| bits.checked_sub(padding_bits));
        padding_bits < 8 && bits.is_some_and(|bits| bits.is_multiple_of(self.bits()))
    }
}

impl fmt::Display for BlobType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Float16 => "fp16",
            Self::Float32 => "fp32",
            Self::UInt8 => "uint8",
            Self::Int8 => "int8",
            Self::BFloat16 => "bf16",
            Self::Int16 => "int16",
            Self::UInt16 => "uint16",
            Self::Int4 => "int4",
            Self::UInt1 => "uint1",
            Self::UInt2 => "uint2",
            Self::UInt4 => "uint4",
            Self::UInt3 => "uint3",
            Self::UInt6 => "uint6",
            Self::Int32 => "int32",
            Self::UInt32 => "uint32",
            Self::Float8E4M3FN => "fp8e4m3fn",
            Self::Float8E5M2 => "fp8e5m2",
        })
    }
}
