//! Blocks of an image that become a batch of smaller images, and back: `space_to_batch` and `batch_to_space`. Pixel
//! (`y`, `x`) of the whole image, moved by the padding, is pixel (`y / bh`, `x / bw`) of the image of batch
//! `(y % bh · bw + x % bw) · n + i`, as in TensorFlow.

use super::dims;
use super::strided::Nest;
use crate::op::{OpError, Operands, Out};

/// Which parts of an image (n, channels, height, width) go where.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    /// Edges of a block.
    pub block: [usize; 2],
    /// Pixels before and after height and width.
    pub frame: [[usize; 2]; 2],
}

impl Grid {
    /// Parameters 1 and 2.
    ///
    /// # Errors
    /// If they are no two edges and no two pairs.
    pub fn new(x: &dyn Operands) -> Result<Self, OpError> {
        let (block, frame) = (x.i32s(1)?, x.i32s(2)?);
        let (&[bh, bw], &[top, bottom, left, right], [2, 2]) = (block, frame, x.shape(2)) else {
            return Err(OpError::mismatch("two edges of a block and two pairs", format!("{block:?} and {frame:?}")));
        };
        if bh < 1 || bw < 1 {
            return Err(x.bad(1, "edges of 1 or more", block));
        }
        let of = |v: i32| dims::extent(x, 2, v);
        Ok(Self { block: [bh as usize, bw as usize], frame: [[of(top)?, of(bottom)?], [of(left)?, of(right)?]] })
    }

    /// Moves every pixel that both sides have. `whole` is the shape of the whole images, `small` that of the batch of
    /// smaller ones.
    ///
    /// # Errors
    /// If the two differ in class.
    pub fn copy(
        &self,
        x: &dyn Operands,
        out: &mut Out<'_>,
        whole: &[usize],
        small: &[usize],
        split: bool,
    ) -> Result<(), OpError> {
        let (from, to) = (dims::strides(whole), dims::strides(small));
        let [bh, bw] = self.block;
        for (by, bx) in (0..bh).flat_map(|by| (0..bw).map(move |bx| (by, bx))) {
            // Along each axis the pixels `first..` of the small image, `turns` of them, are `start`, `start + block` … of the
            // whole one.
            let mut axes = [(0, 0, 0); 2];
            for (k, (axis, offset)) in [by, bx].into_iter().enumerate().map(|(k, o)| (k, (k + 2, o))) {
                let (b, before) = (self.block[k], self.frame[k][0]);
                let first = before.saturating_sub(offset).div_ceil(b);
                let start = (first * b + offset).saturating_sub(before);
                let turns = small[axis].saturating_sub(first).min(whole[axis].saturating_sub(start).div_ceil(b));
                axes[k] = (first, start, turns);
            }
            let [(fy, sy, ty), (fx, sx, tx)] = axes;
            let batch = (by * bw + bx) * whole[0];
            let big = sy * from[2] + sx * from[3];
            let little = batch * to[0] + fy * to[2] + fx * to[3];
            let mut nest = if split { Nest::at(big, little) } else { Nest::at(little, big) };
            for (turns, big, little) in [
                (whole[0], from[0], to[0]),
                (whole[1], from[1], to[1]),
                (ty, bh * from[2], to[2]),
                (tx, bw * from[3], to[3]),
            ] {
                if split { nest.push(turns, big, little) } else { nest.push(turns, little, big) }
            }
            nest.copy(x.data(0)?, &mut out.data)?;
        }
        Ok(())
    }
}
