//! Decoding of stored weights: the list of types, and rows of them as `f32` on demand.
//!
//! Each type is a file of `dequantize/` that gives a [`Kind`]: how many elements one block holds, how many bytes it
//! takes, and how to decode it. The layouts are those of ggml (`ggml-common.h`); the values are pinned by vectors that
//! the `gguf` Python package computed.

mod bf16;
mod f16;
mod f32;
mod iq4_nl;
mod k_scales;
mod nibbles;
mod q2_k;
mod q3_k;
mod q4_0;
mod q4_1;
mod q4_k;
mod q5_0;
mod q5_1;
mod q5_k;
mod q6_k;
mod q8_0;

#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;

/// Every type that can be decoded.
pub static KINDS: &[&Kind] = &[
    &f32::KIND,
    &f16::KIND,
    &bf16::KIND,
    &q8_0::KIND,
    &q4_0::KIND,
    &q4_1::KIND,
    &q5_0::KIND,
    &q5_1::KIND,
    &q2_k::KIND,
    &q3_k::KIND,
    &q4_k::KIND,
    &q5_k::KIND,
    &q6_k::KIND,
    &iq4_nl::KIND,
];

/// The plain types, also found in safetensors files.
pub use self::{bf16::KIND as BF16, f16::KIND as F16, f32::KIND as F32};

/// Elements in a block of the K types.
const SUPER: usize = 256;
/// The largest block of any type, in elements.
const LARGEST_BLOCK: usize = SUPER;

/// How a type of weights is stored.
pub struct Kind {
    /// The name that GGUF tools print, as in `Q4_K`.
    pub name: &'static str,
    /// The number of the type in a GGUF file.
    pub code: u32,
    /// Elements in one block; rows are whole blocks.
    pub block_len: usize,
    /// Bytes of one block.
    pub block_bytes: usize,
    /// Decodes one block (`block_bytes` long) to `block_len` values; where `block_len` is 1, as many as there are.
    decode_block: fn(&[u8], &mut [f32]),
}

impl Kind {
    /// The type with this number in GGUF files, if it can be decoded.
    pub fn from_code(code: u32) -> Option<&'static Kind> {
        KINDS.iter().copied().find(|kind| kind.code == code)
    }

    /// Bytes that `elements` take, which must be whole blocks; `None` when they are not, or on overflow.
    pub fn bytes_for(&self, elements: usize) -> Option<usize> {
        if !elements.is_multiple_of(self.block_len) {
            return None;
        }
        (elements / self.block_len).checked_mul(self.block_bytes)
    }

    /// Decodes the elements `range` of `bytes` (whole blocks) into `out`.
    ///
    /// # Panics
    /// If `out` is not as long as the range, or `bytes` too short for it.
    pub fn decode(&self, bytes: &[u8], range: Range<usize>, out: &mut [f32]) {
        assert_eq!(out.len(), range.len(), "the output is as long as the range");
        assert!(range.end.div_ceil(self.block_len) * self.block_bytes <= bytes.len(), "the range is within the bytes");
        if self.block_len == 1 {
            return (self.decode_block)(&bytes[range.start * self.block_bytes..range.end * self.block_bytes], out);
        }
        let mut scratch = [0.0; LARGEST_BLOCK];
        let mut at = range.start;
        let mut rest = out;
        while at < range.end {
            let block = at / self.block_len;
            let skip = at % self.block_len;
            let take = (self.block_len - skip).min(range.end - at);
            let stored = &bytes[block * self.block_bytes..(block + 1) * self.block_bytes];
            let (now, later) = rest.split_at_mut(take);
            if take == self.block_len {
                (self.decode_block)(stored, now);
            } else {
                (self.decode_block)(stored, &mut scratch[..self.block_len]);
                now.copy_from_slice(&scratch[skip..skip + take]);
            }
            rest = later;
            at += take;
        }
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.code == other.code
    }
}

impl Eq for Kind {}

/// The names of all types that can be decoded, for error messages.
pub fn supported() -> String {
    KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ")
}

/// The name of a type that GGUF files may hold, whether or not it can be decoded here.
pub fn name_of(code: u32) -> String {
    if let Some(kind) = Kind::from_code(code) {
        return kind.name.to_owned();
    }
    match UNDECODED.iter().find(|(known, _)| *known == code) {
        Some((_, name)) => (*name).to_owned(),
        None => format!("number {code}"),
    }
}

/// Types that ggml defines and this crate does not decode.
const UNDECODED: &[(u32, &str)] = &[
    (9, "Q8_1"),
    (15, "Q8_K"),
    (16, "IQ2_XXS"),
    (17, "IQ2_XS"),
    (18, "IQ3_XXS"),
    (19, "IQ1_S"),
    (21, "IQ3_S"),
    (22, "IQ2_S"),
    (23, "IQ4_XS"),
    (24, "I8"),
    (25, "I16"),
    (26, "I32"),
    (27, "I64"),
    (28, "F64"),
    (29, "IQ1_M"),
    (34, "TQ1_0"),
    (35, "TQ2_0"),
    (39, "MXFP4"),
    (40, "NVFP4"),
];

/// The half-precision number at `at`.
fn half_at(bytes: &[u8], at: usize) -> f32 {
    half::f16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f32()
}
