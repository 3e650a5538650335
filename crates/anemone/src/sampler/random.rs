//! Random numbers that stay the same from version to version, which no general-purpose generator promises.

use std::hash::{BuildHasher, Hasher, RandomState};

/// xoshiro256++ seeded through SplitMix64 (both in the public domain, <https://prng.di.unimi.it>).
#[derive(Clone, Debug)]
pub(super) struct Random([u64; 4]);

impl Random {
    /// With a seed, or with one that differs each time.
    pub(super) fn new(seed: Option<u64>) -> Self {
        let mut state = seed.unwrap_or_else(|| RandomState::new().build_hasher().finish());
        Self(std::array::from_fn(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = state;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        }))
    }

    fn next(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.0;
        let drawn = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        drawn
    }

    /// A number from 0 (inclusive) to 1 (exclusive).
    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_published_generator() {
        // The first outputs of xoshiro256++ from the state 1, 2, 3, 4.
        let mut random = Random([1, 2, 3, 4]);
        let expected = [41943041, 58720359, 3588806011781223, 3591011842654386];
        assert_eq!(expected, [(); 4].map(|()| random.next()));
    }

    #[test]
    fn seeds_matter() {
        assert_eq!(Random::new(Some(5)).next(), Random::new(Some(5)).next());
        assert_ne!(Random::new(Some(5)).next(), Random::new(Some(6)).next());
        assert_ne!(Random::new(None).next(), Random::new(None).next());
    }
}
