//! Floats as the bytes they lie in, for kernels that keep bytes in scratch space of floats.

#![allow(unsafe_code, reason = "f32 has no invalid bytes, and bytes no alignment")]

/// The bytes of `words`.
pub fn bytes_of(words: &[f32]) -> &[u8] {
    // SAFETY: the same memory; every byte is initialised, and u8 has no alignment.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

/// The bytes of `words`, writable: any bytes make floats.
pub fn bytes_of_mut(words: &mut [f32]) -> &mut [u8] {
    // SAFETY: as above, and any four bytes are an f32.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of_val(words)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_the_floats() {
        let mut words = [1.0, -2.0];
        assert_eq!(bytes_of(&words), [1.0f32.to_ne_bytes(), (-2.0f32).to_ne_bytes()].as_flattened());
        bytes_of_mut(&mut words)[4..].copy_from_slice(&0.5f32.to_ne_bytes());
        assert_eq!(words, [1.0, 0.5]);
    }
}
