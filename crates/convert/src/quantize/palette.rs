//! Palettes: each weight is an index into a table that some rows share, by `constexpr_lut_to_dense`.
//!
//! Tables are grouped along the rows alone, as the Neural Engine asks for.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anemone_mil::ValueId;
use anemone_mil::build::Arg;
use anemone_mil::types::{DType, StaticType};
use half::f16;
use rayon::prelude::*;

use super::pieces::{Make, Pieces, Sink, halves};
use super::{Form, PIECE, Promise, Watch, Weights, check_finite, int8};
use crate::calibration::Calibration;
use crate::error::Result;
use crate::net::Net;
use crate::source::Tensor;

mod group;
mod kmeans;

use group::Group;

/// A form of palettes.
#[derive(Debug)]
pub(crate) struct Palette {
    /// What it is, for people.
    pub(super) name: &'static str,
    /// Of the indices: of four, six or eight bits.
    pub(super) dtype: DType,
    /// Rows that share a table, if the rows divide by it; else as many as both divide by.
    pub(super) rows: usize,
    pub(super) promise: Promise,
}

/// The palette, if the matrix suits it: rows of whole bytes, tables no larger than their indices. Else eight bits with a scale
/// for each row.
pub(super) fn fit(tensor: &Tensor, palette: &'static Palette) -> Form {
    let (bits, columns) = (palette.dtype.bits(), tensor.row_len());
    let suits = (columns * bits).is_multiple_of(8) && 16 << bits <= palette.group(tensor) * columns * bits;
    if suits { Form::Palette(palette) } else { Form::Blocks(&int8::ROWS) }
}

fn common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

impl Palette {
    fn entries(&self) -> usize {
        1 << self.dtype.bits()
    }

    /// Rows of the matrix that share a table.
    fn group(&self, tensor: &Tensor) -> usize {
        common_divisor(tensor.rows(), self.rows).max(1)
    }

    pub(super) fn bytes(&self, tensor: &Tensor) -> u64 {
        let tables = tensor.rows() / self.group(tensor) * self.entries();
        (tensor.len() as u64 * self.dtype.bits() as u64).div_ceil(8) + 2 * tables as u64
    }

    pub(super) fn add(&'static self, net: &mut Net<'_>, tensor: &Tensor, weights: &Weights) -> Result<ValueId> {
        let name = tensor.name();
        let tables = [tensor.rows() / self.group(tensor), 1, self.entries(), 1];
        let pieces = Pieces::new(Maker {
            palette: self,
            tensor: tensor.clone(),
            watch: weights.watch.clone(),
            calibration: weights.calibration.clone(),
        });
        let mut piece = |suffix: &str, ty: StaticType, index: usize| -> Arg {
            pieces.add(net, &weights.shared, (&format!("{name}_{suffix}"), ty), index).into()
        };
        let args = [
            ("indices", piece("indices", StaticType::new(self.dtype, tensor.shape()), 0)),
            ("lut", piece("lut", StaticType::new(DType::F16, &tables), 1)),
        ];
        net.op("constexpr_lut_to_dense", name, &args)
    }
}

/// Makes the indices of one matrix, then its tables.
#[derive(Debug)]
struct Maker {
    palette: &'static Palette,
    tensor: Tensor,
    watch: Watch,
    calibration: Option<Arc<Calibration>>,
}

impl Make for Maker {
    fn make(&self, mut sink: Option<&mut Sink<'_>>) -> io::Result<Vec<Vec<u8>>> {
        let (rows, columns) = (self.palette.group(&self.tensor), self.tensor.row_len());
        let (entries, groups) = (self.palette.entries(), self.tensor.rows() / rows);
        let feedback = self.calibration.as_ref().and_then(|c| c.feedback(self.tensor.name(), columns));
        let group_bytes = rows * columns * self.palette.dtype.bits() / 8;
        let per_piece = (PIECE / (rows * columns).max(1)).clamp(1, groups.max(1));
        let mut bytes = vec![0; per_piece * group_bytes];
        let mut tables = vec![f16::ZERO; groups * entries];
        for start in (0..groups).step_by(per_piece) {
            self.watch.check()?;
            let n = per_piece.min(groups - start);
            bytes[..n * group_bytes]
                .par_chunks_mut(group_bytes.max(1))
                .zip(tables[start * entries..(start + n) * entries].par_chunks_mut(entries))
                .enumerate()
                .try_for_each_init(Group::default, |group, (i, (bytes, table))| {
                    let first = (start + i) * rows;
                    let values = group.room(rows * columns);
                    self.tensor.decode_rows(first..first + rows, values);
                    check_finite(self.tensor.name(), values)?;
                    group.encode(columns, feedback.as_deref(), table);
                    group.pack(self.palette.dtype.bits(), bytes);
                    io::Result::Ok(())
                })?;
            if let Some(sink) = &mut sink {
                sink(&bytes[..n * group_bytes])?;
                self.watch.done.fetch_add((n * rows * columns) as u64, Ordering::Relaxed);
            }
        }
        Ok(vec![halves(&tables)])
    }
}
