//! Bit fields in vectors of bytes, as the compressions of iOS 16 pack them: from the least significant bit of the first byte
//! up, across borders of bytes.

/// The field of `width` bits (1 to 8) whose lowest bit is bit `at` of the stream. Bits past the end are 0.
#[must_use]
pub fn field(bytes: &[i32], at: usize, width: usize) -> usize {
    let byte = |i: usize| bytes.get(i).map_or(0, |&b| (b & 0xff) as usize);
    ((byte(at / 8) | byte(at / 8 + 1) << 8) >> (at % 8)) & ((1 << width) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_cross_bytes() {
        let bytes = [192, 31, 6, 62];
        assert_eq!((0..5).map(|i| field(&bytes, i * 6, 6)).collect::<Vec<_>>(), [0, 63, 33, 1, 62]);
        assert_eq!(field(&[0b1000_0000], 7, 1), 1);
        assert_eq!(field(&[], 3, 4), 0);
    }
}
