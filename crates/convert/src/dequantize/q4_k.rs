//! `Q4_K`: 256 four-bit numbers in eight groups, each with a six-bit scale and minimum:
//! `d: f16, dmin: f16, scales: [u8; 12], q: [u8; 128]`.

use super::{Kind, SUPER, half_at, k_scales};

/// The type.
pub(super) static KIND: Kind = Kind { name: "Q4_K", code: 12, block_len: SUPER, block_bytes: 144, decode_block };

fn decode_block(bytes: &[u8], out: &mut [f32]) {
    let (d, dmin) = (half_at(bytes, 0), half_at(bytes, 2));
    let (scales, q) = (&bytes[4..16], &bytes[16..144]);
    for (group, values) in out.chunks_exact_mut(32).enumerate() {
        let (scale, minimum) = k_scales::scale_and_minimum(scales, group);
        let (scale, minimum) = (d * scale, dmin * minimum);
        // Two groups share 32 bytes: the low halves, then the high halves.
        let (bytes, shift) = (&q[group / 2 * 32..][..32], group % 2 * 4);
        for (value, &byte) in values.iter_mut().zip(bytes) {
            *value = scale * f32::from((byte >> shift) & 15) - minimum;
        }
    }
}
