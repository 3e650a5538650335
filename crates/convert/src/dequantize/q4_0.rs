//! `Q4_0`: 32 four-bit numbers less 8, times one scale: `d: f16, q: [u8; 16]`.

use super::{Kind, half_at, nibbles};

/// The type.
pub(super) static KIND: Kind = Kind { name: "Q4_0", code: 2, block_len: 32, block_bytes: 18, decode_block };

fn decode_block(bytes: &[u8], out: &mut [f32]) {
    let scale = half_at(bytes, 0);
    nibbles::unpack(&bytes[2..], |i, q| out[i] = scale * (f32::from(q) - 8.0));
}
