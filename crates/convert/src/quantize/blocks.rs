//! Integers with a scale, and an offset perhaps, for each block of a row: `w = scale · (q − offset)`, by
//! `constexpr_blockwise_shift_scale`.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anemone_mil::ValueId;
use anemone_mil::build::Arg;
use anemone_mil::types::{DType, StaticType};
use half::f16;
use rayon::prelude::*;

use super::pieces::{Make, Pieces, Sink, halves};
use super::{Form, PIECE, Promise, Watch, Weights, check_finite, int4, unrepresentable};
use crate::calibration::{Calibration, Feedback};
use crate::error::Result;
use crate::net::Net;
use crate::source::Tensor;

/// A form of integers with scales.
#[derive(Debug)]
pub(crate) struct Blocks {
    /// What it is, for people.
    pub(super) name: &'static str,
    /// Of the integers: of four or eight bits.
    pub(super) dtype: DType,
    /// Columns that share a scale, which divide a row; the whole row if none.
    pub(super) block: Option<usize>,
    /// The type of the offsets, if there are any: half floats, or that of the integers.
    pub(super) offset: Option<DType>,
    /// What is written in its place for the Neural Engine, which takes no blocks.
    pub(super) on_engine: Option<Form>,
    pub(super) promise: Promise,
    pub(super) encode: Encode,
}

/// How weights become integers.
#[derive(Debug, Clone, Copy)]
pub(super) enum Encode {
    /// Row by row.
    Rows(fn(&mut Row<'_>) -> io::Result<()>),
    /// Each to the nearest level of its block's grid. Where the inputs of the layer are known, errors make up for each other.
    Grids(FindGrid),
}

impl Encode {
    /// Encodes one row by itself.
    pub(super) fn row(self, row: &mut Row<'_>) -> io::Result<()> {
        match self {
            Encode::Rows(encode) => encode(row),
            Encode::Grids(find) => int4::each(row, find),
        }
    }
}

/// Finds the grid of a block from its weights and what each of them matters.
pub(super) type FindGrid = fn(&[f32], &[f32]) -> Grid;

/// What the weights of a block are rounded to: `scale · level`, the integers being `level + offset`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grid {
    pub(super) scale: f16,
    /// The scale that tells the level of a weight, near the other.
    pub(super) first: f32,
    pub(super) offset: f32,
    /// The lowest and the highest level.
    pub(super) range: (f32, f32),
}

impl Grid {
    /// That of a block of zeros.
    pub(super) const fn none(offset: f32, range: (f32, f32)) -> Self {
        Self { scale: f16::MIN_POSITIVE_SUBNORMAL, first: 0.0, offset, range }
    }
}

/// One row to encode, and room for what it becomes.
pub(super) struct Row<'a> {
    pub(super) tensor: &'a Tensor,
    pub(super) row: usize,
    /// Room for the decoded weights, with any content.
    pub(super) values: &'a mut [f32],
    /// An integer each, as two's complement if the type has a sign.
    pub(super) q: &'a mut [u8],
    pub(super) scales: &'a mut [f16],
    /// 0 where there are none.
    pub(super) offsets: &'a mut [f16],
}

impl Row<'_> {
    /// Decodes the row into `values`.
    pub(super) fn decode(&mut self) {
        self.tensor.decode_rows(self.row..self.row + 1, self.values);
    }
}

/// Room for one row.
struct Scratch {
    values: Vec<f32>,
    q: Vec<u8>,
    scales: Vec<f16>,
    offsets: Vec<f16>,
}

impl Blocks {
    /// Scales of one row.
    fn per_row(&self, tensor: &Tensor) -> usize {
        self.block.map_or(1, |block| tensor.row_len() / block)
    }

    pub(super) fn bytes(&self, tensor: &Tensor) -> u64 {
        let scales = (tensor.rows() * self.per_row(tensor)) as u64;
        let offsets = self.offset.map_or(0, |t| (scales * t.bits() as u64).div_ceil(8));
        (tensor.len() as u64 * self.dtype.bits() as u64).div_ceil(8) + 2 * scales + offsets
    }

    pub(super) fn add(&'static self, net: &mut Net<'_>, tensor: &Tensor, weights: &Weights) -> Result<ValueId> {
        let name = tensor.name();
        let blocks = [tensor.rows(), self.per_row(tensor)];
        let pieces = Pieces::new(Maker {
            blocks: self,
            tensor: tensor.clone(),
            watch: weights.watch.clone(),
            calibration: weights.calibration.clone(),
        });
        let mut piece = |suffix: &str, dtype: DType, shape: &[usize], index: usize| -> Arg {
            let name = format!("{name}_{suffix}");
            pieces.add(net, &weights.shared, (&name, StaticType::new(dtype, shape)), index).into()
        };
        let mut args: Vec<(&str, Arg)> = vec![
            ("data", piece("data", self.dtype, tensor.shape(), 0)),
            ("scale", piece("scale", DType::F16, &blocks, 1)),
        ];
        if let Some(dtype) = self.offset {
            args.push(("offset", piece("offset", dtype, &blocks, 2)));
        }
        net.op("constexpr_blockwise_shift_scale", name, &args)
    }
}

/// Makes the integers of one matrix, then scales and offsets.
#[derive(Debug)]
struct Maker {
    blocks: &'static Blocks,
    tensor: Tensor,
    watch: Watch,
    calibration: Option<Arc<Calibration>>,
}

impl Make for Maker {
    fn make(&self, mut sink: Option<&mut Sink<'_>>) -> io::Result<Vec<Vec<u8>>> {
        let (rows, columns) = (self.tensor.rows(), self.tensor.row_len());
        let (bits, per_row) = (self.blocks.dtype.bits(), self.blocks.per_row(&self.tensor));
        assert!((bits * columns).is_multiple_of(8), "{}: rows of whole bytes", self.tensor.name());
        let row_bytes = bits * columns / 8;
        let feedback = match (self.blocks.encode, &self.calibration) {
            (Encode::Grids(find), Some(c)) => c.feedback(self.tensor.name(), columns).map(|feedback| (feedback, find)),
            _ => None,
        };
        // Rounding that makes up for itself takes four rows at a time.
        let together = if feedback.is_some() { 4 } else { 1 };
        let per_piece = (PIECE / columns.max(1)).clamp(1, rows.max(1)).next_multiple_of(together);
        let mut bytes = vec![0; per_piece * row_bytes];
        let mut scales = vec![f16::ZERO; rows * per_row];
        let mut offsets = vec![f16::ZERO; rows * per_row];
        for start in (0..rows).step_by(per_piece) {
            self.watch.check()?;
            let n = per_piece.min(rows - start);
            let places = start * per_row..(start + n) * per_row;
            bytes[..n * row_bytes]
                .par_chunks_mut((together * row_bytes).max(1))
                .zip(scales[places.clone()].par_chunks_mut((together * per_row).max(1)))
                .zip(offsets[places].par_chunks_mut((together * per_row).max(1)))
                .enumerate()
                .try_for_each_init(
                    || self.scratch(columns, per_row),
                    |room, (i, ((bytes, scales), offsets))| match &feedback {
                        None => self.row(room, start + i, bytes, scales, offsets),
                        Some((feedback, find)) => {
                            self.rows((feedback, *find), start + together * i, bytes, scales, offsets)
                        }
                    },
                )?;
            if let Some(sink) = &mut sink {
                sink(&bytes[..n * row_bytes])?;
                self.watch.done.fetch_add((n * columns) as u64, Ordering::Relaxed);
            }
        }
        Ok(vec![halves(&scales), self.offset_bytes(&offsets)])
    }
}

impl Maker {
    fn scratch(&self, columns: usize, per_row: usize) -> Scratch {
        let none = vec![f16::ZERO; per_row];
        Scratch { values: vec![0.0; columns], q: vec![0; columns], scales: none.clone(), offsets: none }
    }

    fn row(
        &self,
        room: &mut Scratch,
        row: usize,
        bytes: &mut [u8],
        scales: &mut [f16],
        offsets: &mut [f16],
    ) -> io::Result<()> {
        let Scratch { values, q, scales: s, offsets: o } = room;
        let mut encoded = Row { tensor: &self.tensor, row, values, q, scales: s, offsets: o };
        self.blocks.encode.row(&mut encoded)?;
        scales.copy_from_slice(s);
        offsets.copy_from_slice(o);
        self.pack(q, bytes);
        Ok(())
    }

    fn pack(&self, q: &[u8], bytes: &mut [u8]) {
        if self.blocks.dtype.bits() == 8 {
            bytes.copy_from_slice(q);
        } else {
            bytes.iter_mut().zip(q.as_chunks::<2>().0).for_each(|(b, [low, high])| *b = low & 15 | high << 4);
        }
    }

    /// Up to four rows, whose errors are made up for by the columns after them.
    fn rows(
        &self,
        (feedback, find): (&Feedback, FindGrid),
        first: usize,
        bytes: &mut [u8],
        scales: &mut [f16],
        offsets: &mut [f16],
    ) -> io::Result<()> {
        let (columns, per_row) = (self.tensor.row_len(), self.blocks.per_row(&self.tensor));
        let (rows, block) = (scales.len() / per_row, columns / per_row);
        let mut values = vec![0.0; rows * columns];
        self.tensor.decode_rows(first..first + rows, &mut values);
        check_finite(self.tensor.name(), &values)?;
        let counts: Vec<f32> = feedback.importance.iter().map(|v| v + 0.01).collect();
        let mut grids = Vec::with_capacity(scales.len());
        for (i, values) in values.chunks_exact(block).enumerate() {
            let grid = find(values, &counts[i % per_row * block..][..block]);
            if !grid.scale.is_finite() {
                return Err(unrepresentable(self.tensor.name(), values[0]));
            }
            (scales[i], offsets[i]) = (grid.scale, f16::from_f32(grid.offset));
            grids.push(grid);
        }
        let weight = |row: usize, column: usize| if row < rows { values[row * columns + column] } else { 0.0 };
        let beside: Vec<_> = (0..columns).map(|c| std::array::from_fn(|row| weight(row, c))).collect();
        let mut q = vec![0; rows * columns];
        feedback.round(&beside, |column, row, wanted| {
            let Some(grid) = grids.get(row * per_row + column / block) else { return 0.0 };
            let scale = grid.scale.to_f32();
            let level = (wanted / scale).round_ties_even().clamp(grid.range.0, grid.range.1);
            q[row * columns + column] = (level + grid.offset) as i8 as u8;
            scale * level
        });
        self.pack(&q, bytes);
        Ok(())
    }

    fn offset_bytes(&self, offsets: &[f16]) -> Vec<u8> {
        match self.blocks.offset {
            None => Vec::new(),
            Some(DType::F16) => halves(offsets),
            Some(_) => {
                let nibble = |o: &f16| o.to_f32() as u8 & 15;
                offsets.chunks(2).map(|pair| nibble(&pair[0]) | pair.get(1).map_or(0, nibble) << 4).collect()
            }
        }
    }
}

impl Watch {
    /// An error if it says stop.
    pub(crate) fn check(&self) -> io::Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "stopped on request"));
        }
        Ok(())
    }
}
