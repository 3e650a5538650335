//! `Q8_0`: 32 signed bytes times one half-precision scale: `d: f16, q: [i8; 32]`.

use super::{Kind, half_at};

/// The type.
pub(super) static KIND: Kind = Kind { name: "Q8_0", code: 8, block_len: 32, block_bytes: 34, decode_block };

fn decode_block(bytes: &[u8], out: &mut [f32]) {
    let scale = half_at(bytes, 0);
    for (value, &q) in out.iter_mut().zip(&bytes[2..]) {
        *value = scale * f32::from(q.cast_signed());
    }
}
