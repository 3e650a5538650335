//! `F32`: plain single precision, little-endian.

use super::Kind;

/// The type.
pub static KIND: Kind = Kind { name: "F32", code: 0, block_len: 1, block_bytes: 4, decode_block };

fn decode_block(bytes: &[u8], out: &mut [f32]) {
    for (value, stored) in out.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *value = f32::from_le_bytes(*stored);
    }
}
