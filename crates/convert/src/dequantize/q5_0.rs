//! `Q5_0`: 32 five-bit numbers less 16, times one scale: `d: f16, fifth bits: [u8; 4], low bits: [u8; 16]`.

use super::{Kind, half_at, nibbles};

/// The type.
pub(super) static KIND: Kind = Kind { name: "Q5_0", code: 6, block_len: 32, block_bytes: 22, decode_block };

fn decode_block(bytes: &[u8], out: &mut [f32]) {
    let scale = half_at(bytes, 0);
    let fifth = &bytes[2..6];
    nibbles::unpack(&bytes[6..], |i, q| {
        out[i] = scale * (f32::from(q | nibbles::fifth_bit(fifth, i)) - 16.0);
    });
}
