//! The scales and offsets of integer weights: `value = scale · (q − offset)`, one pair per row and block of columns.

use super::PANEL;
use crate::buffer::{ALIGN, round_up};
use crate::lanes::Lanes;
use half::f16;

/// How scales are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleType {
    /// Two bytes: exact for a package whose scales are f16.
    F16,
    /// Four bytes.
    F32,
}

/// The shape of a quantized matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockShape {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub k: usize,
    /// How many columns share a scale: `k` itself, or a multiple of 16 that divides `k`.
    pub block: usize,
    /// How scales are kept.
    pub scale: ScaleType,
    /// Whether there are offsets. They are kept as f16, which is exact for integers up to 2048.
    pub offsets: bool,
}

impl BlockShape {
    /// Whether the kernels can compute with this shape.
    pub fn supported(&self) -> bool {
        self.block > 0
            && self.k < 1 << 20
            && self.k.is_multiple_of(self.block)
            && (self.block == self.k || self.block.is_multiple_of(16))
    }

    /// Blocks per row.
    pub fn blocks(&self) -> usize {
        self.k / self.block
    }

    pub(crate) fn panels(&self) -> usize {
        self.rows.div_ceil(PANEL)
    }

    /// Whether the chunks of the sum are 16 columns wide, not 32.
    pub(crate) fn narrow(&self) -> bool {
        self.block != self.k && !self.block.is_multiple_of(32)
    }

    fn scale_size(&self) -> usize {
        match self.scale {
            ScaleType::F16 => 2,
            ScaleType::F32 => 4,
        }
    }

    /// The lengths of the three sections: weights of `bits`, scales, offsets.
    pub(crate) fn sections(&self, bits: usize) -> [usize; 3] {
        let count = self.panels() * self.blocks() * PANEL;
        let offsets = if self.offsets { count * 2 } else { 0 };
        let data = self.panels() * round_up(self.k, 32) * PANEL * bits / 8;
        [data, count * self.scale_size(), offsets].map(|n| round_up(n, ALIGN))
    }

    pub(crate) fn check(&self) {
        assert!(self.k < 1 << 20, "{} columns are more than the kernels count", self.k);
        assert!(self.supported(), "blocks of {} columns of {} are not supported", self.block, self.k);
    }

    /// Writes scales and offsets, each `[rows, blocks]`, into their sections. `bias` is added to the offsets.
    pub(crate) fn pack(&self, scales: &[f32], offsets: Option<&[f32]>, bias: f32, into: [&mut [u8]; 2]) {
        let blocks = self.blocks();
        assert_eq!(scales.len(), self.rows * blocks, "pack: the number of scales is not rows x blocks");
        assert_eq!(offsets.is_some(), self.offsets, "pack: offsets are there, or not, against the shape");
        let [scale_bytes, offset_bytes] = into;
        for r in 0..self.rows {
            for b in 0..blocks {
                let at = (r / PANEL * blocks + b) * PANEL + r % PANEL;
                let scale = scales[r * blocks + b];
                match self.scale {
                    ScaleType::F16 => {
                        scale_bytes[2 * at..][..2].copy_from_slice(&f16::from_f32(scale).to_le_bytes());
                    }
                    ScaleType::F32 => scale_bytes[4 * at..][..4].copy_from_slice(&scale.to_le_bytes()),
                }
                if let Some(offsets) = offsets {
                    let offset = f16::from_f32(offsets[r * blocks + b] + bias);
                    offset_bytes[2 * at..][..2].copy_from_slice(&offset.to_le_bytes());
                }
            }
        }
    }
}

/// The scales and offsets of one panel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scales<'a> {
    scales: &'a [u8],
    offsets: &'a [u8],
    wide: bool,
    /// Which block chunk `c` lies in: `c · per_chunk >> 32`, for fewer than 2^16 chunks.
    per_chunk: u64,
    /// Whether chunks are 16 columns wide, not 32.
    pub(crate) narrow: bool,
}

impl<'a> Scales<'a> {
    #[inline(always)]
    pub(crate) fn panel(shape: &BlockShape, scales: &'a [u8], offsets: &'a [u8], index: usize) -> Self {
        let blocks = shape.blocks();
        let size = blocks * PANEL * shape.scale_size();
        let offsets = if shape.offsets { &offsets[index * blocks * PANEL * 2..][..blocks * PANEL * 2] } else { &[] };
        let width = if shape.narrow() { 16 } else { 32 };
        Self {
            scales: &scales[index * size..][..size],
            offsets,
            wide: shape.scale == ScaleType::F32,
            per_chunk: (1_u64 << 32).div_ceil(shape.block.div_ceil(width) as u64),
            narrow: shape.narrow(),
        }
    }

    /// Whether a row has one scale.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "for tiles"))]
    #[inline(always)]
    pub(crate) fn uniform(&self) -> bool {
        self.scales.len() == PANEL * if self.wide { 4 } else { 2 }
    }

    #[inline(always)]
    fn block(&self, chunk: usize) -> usize {
        ((chunk as u64 * self.per_chunk) >> 32) as usize
    }

    #[inline(always)]
    pub(crate) fn scale<S: Lanes>(&self, s: S, chunk: usize) -> S::F {
        let block = self.block(chunk);
        if self.wide {
            s.load_bytes(&self.scales.as_chunks().0[block])
        } else {
            s.load_f16_bytes(&self.scales.as_chunks().0[block])
        }
    }

    #[inline(always)]
    pub(crate) fn offset<S: Lanes>(&self, s: S, chunk: usize) -> S::F {
        s.load_f16_bytes(&self.offsets.as_chunks().0[self.block(chunk)])
    }
}
