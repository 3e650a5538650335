//! `Q4_1`: 32 four-bit numbers times a scale, plus a minimum: `d: f16, m: f16, q: [u8; 16]`.

use super::{Kind, half_at, nibbles};

/// The type.
pub(super) static KIND: Kind = Kind { name: "Q4_1", code: 3, block_len: 32, block_bytes: 20, decode_block };

fn decode_block(bytes: &[u8], out: &mut [f32]) {
    let (scale, minimum) = (half_at(bytes, 0), half_at(bytes, 2));
    nibbles::unpack(&bytes[4..], |i, q| out[i] = scale * f32::from(q) + minimum);
}
