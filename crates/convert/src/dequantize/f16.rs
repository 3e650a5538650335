//! `F16`: IEEE half precision, little-endian.

use super::{Kind, half_at};

/// The type.
pub static KIND: Kind = Kind { name: "F16", code: 1, block_len: 1, block_bytes: 2, decode_block };

fn decode_block(bytes: &[u8], out: &mut [f32]) {
    for (value, stored) in out.iter_mut().zip(bytes.as_chunks::<2>().0) {
        *value = half_at(stored, 0);
    }
}
