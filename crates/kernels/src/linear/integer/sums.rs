//! The innermost loops of products in integers: 32 columns of a few panels and a few tokens.

use super::{Block, IntegerPanel};
use crate::lanes::Lanes;

/// The sums of products of a block: of each panel, plane of its weights, token, and byte of the activations. Those of two low bytes
/// are left out.
pub(super) type Sums<I, const T: usize, const N: usize> = [[[[I; 2]; T]; 2]; N];

/// Byte by byte of the activations.
#[inline(always)]
pub(super) fn bytes<S: Lanes, P: IntegerPanel<S>, const T: usize, const N: usize>(
    s: S,
    panels: &[P; N],
    chunks: &[P::Chunk; N],
    lines: &[P::Lines; N],
    x: &[Block; T],
) -> Sums<S::I, T, N> {
    let start = panels[0].start() & 15;
    let mut sums = [[[[s.isplat(0); 2]; T]; 2]; N];
    for t in 0..T {
        for d in 0..2 {
            sums[0][0][t][d] = s.isplat(i32::from_le_bytes(x[t][d][start]));
        }
    }
    sums = [[sums[0][0]; 2]; N];
    for g in 0..4 {
        let mut weights = [panels[0].bytes(s, &chunks[0], lines[0], g); N];
        for w in 1..N {
            weights[w] = panels[w].bytes(s, &chunks[w], lines[w], g);
        }
        for half in 0..2 {
            for t in 0..T {
                for d in 0..2 {
                    let x = s.isplat(i32::from_le_bytes(x[t][d][2 * g + half]));
                    for w in 0..N {
                        for plane in 0..if d == 1 { 1 } else { P::PLANES } {
                            let sum = &mut sums[w][plane][t][d];
                            let bytes = weights[w][plane][half];
                            *sum = if P::NIBBLES { s.dot_nibbles(*sum, bytes, x) } else { s.dot_bytes(*sum, bytes, x) };
                        }
                    }
                }
            }
        }
    }
    sums
}

/// Both bytes of the activations at once.
#[inline(always)]
pub(super) fn pairs<S: Lanes, P: IntegerPanel<S>, const T: usize, const N: usize>(
    s: S,
    panels: &[P; N],
    chunks: &[P::Chunk; N],
    lines: &[P::Lines; N],
    x: &[Block; T],
) -> Sums<S::I, T, N> {
    let start = panels[0].start() & 15;
    let mut sums = [[[[s.isplat(0); 2]; T]; 2]; N];
    for t in 0..T {
        let [high, low] = [0, 1].map(|d| i32::from_le_bytes(x[t][d][start]));
        sums[0][0][t] = s.pair_splat(high, low);
    }
    sums = [[sums[0][0]; 2]; N];
    for g in 0..4 {
        for w in 0..N {
            let weights = panels[w].bytes(s, &chunks[w], lines[w], g);
            for plane in 0..P::PLANES {
                let weights = s.pair_weights(weights[plane]);
                for t in 0..T {
                    let [high, low] =
                        [&x[t][0].as_flattened().as_chunks().0[g], &x[t][1].as_flattened().as_chunks().0[g]];
                    sums[w][plane][t] = s.dot_pair(sums[w][plane][t], weights, high, low);
                }
            }
        }
    }
    for w in 0..N {
        for plane in 0..P::PLANES {
            for t in 0..T {
                sums[w][plane][t] = s.pair_split(sums[w][plane][t]);
            }
        }
    }
    sums
}
