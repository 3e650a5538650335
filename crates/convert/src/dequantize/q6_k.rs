//! `Q6_K`: 256 six-bit numbers less 32, in sixteen groups, each with a signed eight-bit scale:
//! `low bits: [u8; 128], upper bits: [u8; 64], scales: [i8; 16], d: f16`.

use super::{Kind, SUPER, half_at};

/// The type.
pub(super) static KIND: Kind = Kind { name: "Q6_K", code: 14, block_len: SUPER, block_bytes: 210, decode_block };

fn decode_block(bytes: &[u8], out: &mut [f32]) {
    let (low, upper, scales) = (&bytes[..128], &bytes[128..192], &bytes[192..208]);
    let d = half_at(bytes, 208);
    for (i, value) in out.iter_mut().enumerate() {
        let scale = d * f32::from(scales[i / 16].cast_signed());
        let (half, quarter, at) = (i / 128, i % 128 / 32, i % 32);
        let four = (low[half * 64 + quarter % 2 * 32 + at] >> (quarter / 2 * 4)) & 15;
        let two = (upper[half * 32 + at] >> (2 * quarter)) & 3;
        *value = scale * (f32::from(four | two << 4) - 32.0);
    }
}
