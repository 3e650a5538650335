//! `Q5_K`: 256 five-bit numbers in eight groups, each with a six-bit scale and minimum:
//! `d: f16, dmin: f16, scales: [u8; 12], fifth bits: [u8; 32], low bits: [u8; 128]`.

use super::{Kind, SUPER, half_at, k_scales};

/// The type.
pub(super) static KIND: Kind = Kind { name: "Q5_K", code: 13, block_len: SUPER, block_bytes: 176, decode_block };

fn decode_block(bytes: &[u8], out: &mut [f32]) {
    let (d, dmin) = (half_at(bytes, 0), half_at(bytes, 2));
    let (scales, fifth, q) = (&bytes[4..16], &bytes[16..48], &bytes[48..176]);
    for (group, values) in out.chunks_exact_mut(32).enumerate() {
        let (scale, minimum) = k_scales::scale_and_minimum(scales, group);
        let (scale, minimum) = (d * scale, dmin * minimum);
        let (low, shift) = (&q[group / 2 * 32..][..32], group % 2 * 4);
        for ((value, &byte), &bits) in values.iter_mut().zip(low).zip(fifth) {
            let five = (byte >> shift) & 15 | ((bits >> group) & 1) << 4;
            *value = scale * f32::from(five) - minimum;
        }
    }
}
