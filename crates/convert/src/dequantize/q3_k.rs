//! `Q3_K`: 256 three-bit numbers in sixteen groups, each with a signed six-bit scale:
//! `third bits: [u8; 32], low bits: [u8; 64], scales: [u8; 12], d: f16`.

use super::{Kind, SUPER, half_at};

/// The type.
pub(super) static KIND: Kind = Kind { name: "Q3_K", code: 11, block_len: SUPER, block_bytes: 110, decode_block };

fn decode_block(bytes: &[u8], out: &mut [f32]) {
    let (third, low, scales) = (&bytes[..32], &bytes[32..96], &bytes[96..108]);
    let d = half_at(bytes, 108);
    for (i, value) in out.iter_mut().enumerate() {
        let scale = d * f32::from(scale(scales, i / 16));
        let (half, quarter, at) = (i / 128, i % 128 / 32, i % 32);
        let two = ((low[half * 32 + at] >> (2 * quarter)) & 3).cast_signed();
        let set = (third[at] >> (4 * half + quarter)) & 1 == 1;
        *value = scale * f32::from(if set { two } else { two - 4 });
    }
}

/// The scale of a group, −32 to 31: four low bits in bytes 0–7 (groups 8–15 in the high halves), two upper bits in
/// bytes 8–11.
fn scale(packed: &[u8], group: usize) -> i8 {
    let low = (packed[group % 8] >> (4 * (group / 8))) & 15;
    let high = (packed[8 + group % 4] >> (2 * (group / 4))) & 3;
    (low | high << 4).cast_signed() - 32
}
