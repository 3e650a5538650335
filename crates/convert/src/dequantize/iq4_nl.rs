//! `IQ4_NL`: 32 four-bit indices into a fixed table of 16 levels, times one scale: `d: f16, q: [u8; 16]`.

use super::{Kind, half_at, nibbles};

/// The type.
pub(super) static KIND: Kind = Kind { name: "IQ4_NL", code: 20, block_len: 32, block_bytes: 18, decode_block };

/// The levels, finer near zero (`kvalues_iq4nl` of `ggml-common.h`).
const LEVELS: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

fn decode_block(bytes: &[u8], out: &mut [f32]) {
    let scale = half_at(bytes, 0);
    nibbles::unpack(&bytes[2..], |i, q| out[i] = scale * f32::from(LEVELS[usize::from(q)]));
}
