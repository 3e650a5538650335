//! The eight six-bit scales and minima that `Q4_K` and `Q5_K` pack into twelve bytes.

/// Scale and minimum of group `group` (0–7, 32 elements each).
///
/// Bytes 0–3 hold the scales of groups 0–3 in their low six bits, bytes 4–7 the minima of groups 0–3. Groups 4–7 have
/// their low four bits in bytes 8–11 (scale in the low half, minimum in the high half) and their upper two bits in the
/// top of bytes 0–3 and 4–7.
pub(super) fn scale_and_minimum(packed: &[u8], group: usize) -> (f32, f32) {
    let (scale, minimum) = if group < 4 {
        (packed[group] & 63, packed[group + 4] & 63)
    } else {
        let low = packed[group + 4];
        (low & 15 | (packed[group - 4] >> 6) << 4, low >> 4 | (packed[group] >> 6) << 4)
    };
    (f32::from(scale), f32::from(minimum))
}
