//! Attention of more than sixteen tokens by tiles (AMX), over keys and values in half floats.
//!
//! # Numbers
//!
//! The positions are cut into blocks of [`BLOCK`], merged in order as in [`super::attend`]. In a block, a number is the sum of
//! two in bfloat16, cut off rather than rounded: keys and values exactly so, queries (times the scale) and weights
//! `e^(score − max)` to 16 bits. Of the four products of two such numbers, all but that of the low halves are summed, in f32.
//! The bits of a token depend neither on the other tokens nor on how many there are.
//!
//! A score is as good as one of queries rounded to 2^-16 of each, a weight is cut off by 2^-16 of itself at most.
//!
//! # Roofline
//!
//! A tile instruction multiplies 16 rows by 16 columns by 32 in 16 cycles, sixteen times what vectors of f32 do; three of them are
//! needed here. Scores and weighted sums of 16 rows over 16 positions of 64 coordinates take 192 cycles; the exponentials of
//! these, and their halves, some 300. Keys and values are cut in two, and keys turned, once for all rows of a group: some 600
//! cycles for sixteen positions, which 96 rows share.

#[cfg(target_arch = "x86_64")]
mod block;
#[cfg(target_arch = "x86_64")]
mod operands;
#[cfg(all(test, target_arch = "x86_64"))]
mod tests;

use super::Group;
use crate::isa::{Amx, Isa};

/// Positions per block.
const BLOCK: usize = 256;
/// Rows of a tile.
const HEIGHT: usize = 16;
/// Rows that are multiplied at once.
const ROWS: usize = 2 * HEIGHT;
/// Columns of a tile.
const COLUMNS: usize = 32;
/// f32 that 32 columns of a tile's rows take, high halves and low ones.
const HALVES: usize = HEIGHT * COLUMNS;

/// Sizes in tiles.
#[derive(Clone, Copy)]
struct Sizes {
    /// Pairs of tiles of rows.
    pairs: usize,
    /// Steps of 32 coordinates.
    steps: usize,
}

impl Sizes {
    const fn new(rows: usize, dim: usize) -> Self {
        Self { pairs: rows.div_ceil(ROWS), steps: dim.div_ceil(COLUMNS) }
    }
}

/// How many f32 of scratch [`attend`] needs for `rows` query rows of `dim` values.
pub const fn scratch_len(rows: usize, dim: usize) -> usize {
    let Sizes { pairs, steps } = Sizes::new(rows, dim);
    let operands = 2 * pairs * steps + 2 * (BLOCK / HEIGHT) * steps + 2 * BLOCK / COLUMNS;
    operands * HALVES + ROWS * BLOCK + ROWS * COLUMNS * steps + 2 * rows + 16
}

/// The proof that [`attend`] can be used for `width` tokens and is worth it. Up to sixteen are left to [`super::attend`]: a token
/// with guesses for those that follow gets the numbers that it has alone.
pub fn fit(isa: Isa, width: usize) -> Option<Amx> {
    match isa {
        Isa::Amx(amx) if width > HEIGHT => Some(amx),
        _ => None,
    }
}

/// As [`super::attend`], with the numbers of this module; `scratch` is at least [`scratch_len`].
pub fn attend(amx: Amx, group: &Group<'_, u16>, scratch: &mut [f32], out: &mut [f32]) {
    group.check();
    let (rows, dim) = (group.rows(), group.dim);
    assert_eq!(out.len(), rows * dim, "attention: out has {} values, {rows} rows of {dim} needed", out.len());
    let need = scratch_len(rows, dim);
    assert!(scratch.len() >= need, "attention: scratch of {}, {need} needed", scratch.len());
    #[cfg(target_arch = "x86_64")]
    if let super::Keys::Rows(keys) = group.keys {
        return amx.run(block::Tiled { group, keys, scratch, out });
    }
    super::attend(Isa::Amx(amx), group, scratch, out);
}
