//! What the tests of products share.

/// Numbers that look random.
pub(crate) fn numbers(seed: u64, n: usize) -> Vec<u64> {
    let mut state = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..n)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state >> 16
        })
        .collect()
}

/// Numbers between -1 and 1.
pub(crate) fn floats(seed: u64, n: usize) -> Vec<f32> {
    numbers(seed, n).iter().map(|v| (v % 20_001) as f32 / 10_000.0 - 1.0).collect()
}

/// Asserts that bits are the same, but for those of NaNs.
pub(crate) fn same(a: &[f32], b: &[f32], what: &str) {
    assert_eq!(a.len(), b.len());
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!(a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(), "{what}: element {i}: {a} and {b} differ");
    }
}
