//! What the machine gives at most: the figures that kernels are held against.

use std::hint::black_box;

use crate::isa::{Isa, Kernel};
use crate::lanes::Lanes;

/// Accumulators that are in flight at once.
const CHAINS: usize = 12;

struct Dots(usize);

impl Kernel for Dots {
    type Out = [u8; 16];
    #[inline(always)]
    fn run<S: Lanes>(self, s: S) -> [u8; 16] {
        let (w, a) = (s.isplat(black_box(0x0102_0304)), s.isplat(black_box(0x0101_0101)));
        let mut sums = [s.isplat(0); CHAINS];
        for _ in 0..self.0 {
            for sum in &mut sums {
                *sum = s.dot_nibbles(*sum, w, a);
            }
        }
        let mut all = sums[0];
        for sum in sums {
            all = s.ior(all, sum);
        }
        let mut out = [0; 16];
        s.store_bytes(all, &mut out);
        out
    }
}

/// Does `rounds` rounds of products of bytes, all in registers; gives the number of operations, two for each multiplication
/// with its addition.
pub fn byte_products(isa: Isa, rounds: usize) -> u64 {
    black_box(isa.run(Dots(rounds)));
    (rounds * CHAINS * 64 * 2) as u64
}

struct Lines<'a>(&'a [[u8; 64]]);

impl Kernel for Lines<'_> {
    type Out = [u8; 16];
    #[inline(always)]
    fn run<S: Lanes>(self, s: S) -> [u8; 16] {
        let mut sums = [s.isplat(0); 4];
        let (fours, rest) = self.0.as_chunks::<4>();
        for lines in fours {
            s.prefetch(&lines[0], 4096);
            s.prefetch(&lines[0], 4160);
            s.prefetch(&lines[0], 4224);
            s.prefetch(&lines[0], 4288);
            for (sum, line) in sums.iter_mut().zip(lines) {
                *sum = s.ior(*sum, s.iload(line));
            }
        }
        for line in rest {
            sums[0] = s.ior(sums[0], s.iload(line));
        }
        let all = s.ior(s.ior(sums[0], sums[1]), s.ior(sums[2], sums[3]));
        let mut out = [0; 16];
        s.store_bytes(all, &mut out);
        out
    }
}

/// Reads all of `bytes` once, from front to back, with the widest loads there are.
pub fn read(isa: Isa, bytes: &[u8]) {
    black_box(isa.run(Lines(bytes.as_chunks().0)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instruction_set_counts_the_same() {
        for isa in [Isa::Scalar, Isa::detect()] {
            assert_eq!(byte_products(isa, 3), 3 * 12 * 128);
            let expected = isa.run(Dots(5));
            assert_eq!(expected, [5 * 10; 16], "1 + 2 + 3 + 4, five times");
            let mut bytes = vec![0_u8; 64 * 9];
            bytes[64 * 8] = 7;
            assert_eq!(isa.run(Lines(bytes.as_chunks().0))[0], 7);
        }
    }
}
