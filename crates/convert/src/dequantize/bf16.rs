//! `BF16`: the upper half of single precision, little-endian.

use super::Kind;

/// The type.
pub static KIND: Kind = Kind { name: "BF16", code: 30, block_len: 1, block_bytes: 2, decode_block };

fn decode_block(bytes: &[u8], out: &mut [f32]) {
    for (value, stored) in out.iter_mut().zip(bytes.as_chunks::<2>().0) {
        *value = f32::from_bits(u32::from(u16::from_le_bytes(*stored)) << 16);
    }
}
