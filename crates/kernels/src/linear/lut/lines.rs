//! How indices lie in lines of 64 bytes: cut into parts of bits, and taken out again.

use crate::lanes::Lanes;

/// The parts that indices of `bits` are cut into, the low one first.
pub(super) fn parts(bits: usize) -> impl Iterator<Item = usize> {
    let (low, high) = match bits {
        3 => (2, 1),
        6 => (4, 2),
        _ => (bits, 0),
    };
    Parts(low, high)
}

struct Parts(usize, usize);

impl Iterator for Parts {
    type Item = usize;
    fn next(&mut self) -> Option<usize> {
        let part = std::mem::replace(&mut self.0, std::mem::take(&mut self.1));
        (part > 0).then_some(part)
    }
}

/// Where a part of `bits` of the `column`-th column of a line lies in its lane.
#[inline(always)]
pub(super) const fn shift(bits: usize, column: usize) -> u32 {
    (column % 4 * 8 + column / 4 * bits) as u32
}

/// The `j`-th column of a line of parts of `bits`, at the bottom of its lane.
#[inline(always)]
pub(super) fn part<S: Lanes>(s: S, a: S::I, bits: usize, j: usize) -> S::I {
    s.shr(a, shift(bits, j))
}

#[inline(always)]
pub(super) fn mask<S: Lanes>(s: S, a: S::I, bits: usize) -> S::I {
    s.iand(a, s.isplat((1 << bits) - 1))
}

/// Eight columns: the low and the high parts, shifted so that the first column is at the bottom.
#[inline(always)]
pub(super) fn group<S: Lanes>(s: S, lines: &[[u8; 64]], bits: usize, g: usize) -> [S::I; 2] {
    macro_rules! one {
        ($line:literal) => {
            s.shr(s.iload(&lines[$line]), 2 * g as u32)
        };
    }
    macro_rules! two {
        ($line:literal) => {
            s.shr(s.iload(&lines[$line + g / 2]), 4 * (g as u32 % 2))
        };
    }
    match bits {
        1 => [one!(0); 2],
        2 => [two!(0); 2],
        3 => [two!(0), one!(2)],
        4 => [s.iload(&lines[g]); 2],
        6 => [s.iload(&lines[g]), two!(4)],
        _ => [s.iload(&lines[2 * g]), s.iload(&lines[2 * g + 1])],
    }
}
