//! `Q2_K`: 256 two-bit numbers in sixteen groups, each with a four-bit scale and minimum:
//! `scales: [u8; 16], q: [u8; 64], d: f16, dmin: f16`.

use super::{Kind, SUPER, half_at};

/// The type.
pub(super) static KIND: Kind = Kind { name: "Q2_K", code: 10, block_len: SUPER, block_bytes: 84, decode_block };

fn decode_block(bytes: &[u8], out: &mut [f32]) {
    let (scales, q) = (&bytes[..16], &bytes[16..80]);
    let (d, dmin) = (half_at(bytes, 80), half_at(bytes, 82));
    for (i, value) in out.iter_mut().enumerate() {
        let group = i / 16;
        let scale = d * f32::from(scales[group] & 15);
        let minimum = dmin * f32::from(scales[group] >> 4);
        // Each half of 128 elements shares 32 bytes; its quarters are the four bit pairs of those bytes.
        let (half, quarter, at) = (i / 128, i % 128 / 32, i % 32);
        let two = (q[half * 32 + at] >> (2 * quarter)) & 3;
        *value = scale * f32::from(two) - minimum;
    }
}
