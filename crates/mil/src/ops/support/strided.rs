//! Copies between layouts: what transposing, slicing, tiling, concatenating and their kin share.

use smallvec::SmallVec;

use super::dims::class_mismatch;
use crate::op::OpError;
use crate::tensor::{Data, DataMut};

/// A nest of loops, outermost first; every turn of the innermost moves one element.
#[derive(Clone, Debug, Default)]
pub struct Nest {
    loops: SmallVec<[Loop; 8]>,
    src: usize,
    dst: usize,
    empty: bool,
}

/// One loop: its number of turns, and by how many elements a turn moves on in the source and in the destination.
#[derive(Clone, Copy, Debug)]
struct Loop {
    turns: usize,
    src: isize,
    dst: isize,
}

impl Nest {
    /// No loops: one element, from `src` to `dst`.
    #[must_use]
    pub fn at(src: usize, dst: usize) -> Self {
        Self { src, dst, ..Self::default() }
    }

    /// Adds a loop inside the present ones. A negative source stride is given in two's complement.
    pub fn push(&mut self, turns: usize, src: usize, dst: usize) {
        let (src, dst) = (src as isize, dst as isize);
        self.empty |= turns == 0;
        if turns == 1 || self.empty {
            return;
        }
        if let Some(outer) = self.loops.last_mut() {
            // Two loops that walk both sides without a gap are one.
            let n = turns as isize;
            if src.checked_mul(n) == Some(outer.src) && dst.checked_mul(n) == Some(outer.dst) {
                *outer = Loop { turns: outer.turns * turns, src, dst };
                return;
            }
        }
        self.loops.push(Loop { turns, src, dst });
    }

    /// Runs the loops.
    ///
    /// # Errors
    /// If the two sides are of different classes.
    ///
    /// # Panics
    /// If the loops leave the slices.
    pub fn copy(&self, src: Data<'_>, dst: &mut DataMut<'_>) -> Result<(), OpError> {
        match (src, dst) {
            (Data::F32(s), DataMut::F32(d)) => self.run(s, d),
            (Data::I32(s), DataMut::I32(d)) => self.run(s, d),
            (Data::Bool(s), DataMut::Bool(d)) => self.run(s, d),
            _ => return Err(class_mismatch()),
        }
        Ok(())
    }

    /// Runs the loops over elements of one type.
    ///
    /// # Panics
    /// If the loops leave the slices.
    pub fn run<T: Copy>(&self, src: &[T], dst: &mut [T]) {
        if !self.empty {
            walk(&self.loops, src, self.src as isize, dst, self.dst as isize);
        }
    }
}

/// Edge of the square blocks in which a matrix is turned, so that both sides stay in cache.
const BLOCK: usize = 16;

fn walk<T: Copy>(loops: &[Loop], src: &[T], from: isize, dst: &mut [T], to: isize) {
    match loops {
        [] => dst[to as usize] = src[from as usize],
        &[Loop { turns, src: 1, dst: 1 }] => {
            let (from, to) = (from as usize, to as usize);
            dst[to..to + turns].copy_from_slice(&src[from..from + turns]);
        }
        &[Loop { turns, src: 0, dst: 1 }] => dst[to as usize..to as usize + turns].fill(src[from as usize]),
        &[one] => {
            for i in 0..one.turns as isize {
                dst[(to + i * one.dst) as usize] = src[(from + i * one.src) as usize];
            }
        }
        &[a @ Loop { src: 1, .. }, b] => {
            for i in (0..a.turns).step_by(BLOCK) {
                for j in (0..b.turns).step_by(BLOCK) {
                    for p in i..a.turns.min(i + BLOCK) {
                        for q in j..b.turns.min(j + BLOCK) {
                            let (p, q) = (p as isize, q as isize);
                            dst[(to + p * a.dst + q * b.dst) as usize] = src[(from + p + q * b.src) as usize];
                        }
                    }
                }
            }
        }
        [one, inner @ ..] => {
            for i in 0..one.turns as isize {
                walk(inner, src, from + i * one.src, dst, to + i * one.dst);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_without_gaps_become_one() {
        let mut n = Nest::at(0, 0);
        n.push(2, 12, 12);
        n.push(1, 99, 99);
        n.push(3, 4, 4);
        n.push(4, 1, 1);
        assert_eq!(n.loops.len(), 1);
        assert_eq!(n.loops[0].turns, 24);
    }

    #[test]
    fn a_large_matrix_is_turned_block_by_block() {
        let (rows, cols) = (37, 21);
        let src: Vec<i32> = (0..rows * cols).map(|i| i as i32).collect();
        let mut dst = vec![0; src.len()];
        let mut n = Nest::at(0, 0);
        n.push(cols, 1, rows);
        n.push(rows, cols, 1);
        n.run(&src, &mut dst);
        for r in 0..rows {
            for c in 0..cols {
                assert_eq!(dst[c * rows + r], src[r * cols + c]);
            }
        }
    }

    #[test]
    fn no_turn_moves_nothing() {
        let mut n = Nest::at(5, 5);
        n.push(3, 1, 1);
        n.push(0, 1, 1);
        n.run::<f32>(&[], &mut []);
    }
}
