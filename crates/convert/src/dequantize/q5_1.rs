//! `Q5_1`: 32 five-bit numbers times a scale, plus a minimum: `d: f16, m: f16, fifth bits: [u8; 4], low bits: [u8; 16]`.

use super::{Kind, half_at, nibbles};

/// The type.
pub(super) static KIND: Kind = Kind { name: "Q5_1", code: 7, block_len: 32, block_bytes: 24, decode_block };

fn decode_block(bytes: &[u8], out: &mut [f32]) {
    let (scale, minimum) = (half_at(bytes, 0), half_at(bytes, 2));
    let fifth = &bytes[4..8];
    nibbles::unpack(&bytes[8..], |i, q| {
        out[i] = scale * f32::from(q | nibbles::fifth_bit(fifth, i)) + minimum;
    });
}
