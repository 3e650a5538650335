//! Reading of packed four-bit numbers, common to the 32-element types.

/// The 32 four-bit numbers of 16 bytes: the low halves are elements 0–15, the high halves elements 16–31.
pub(super) fn unpack(packed: &[u8], mut element: impl FnMut(usize, u8)) {
    for (i, &byte) in packed[..16].iter().enumerate() {
        element(i, byte & 15);
        element(i + 16, byte >> 4);
    }
}

/// Bit `i` of four little-endian bytes, as the fifth bit (16 or 0) of an element.
pub(super) fn fifth_bit(bits: &[u8], i: usize) -> u8 {
    ((bits[i / 8] >> (i % 8)) & 1) << 4
}
