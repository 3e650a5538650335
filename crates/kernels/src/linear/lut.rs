//! Palettes: each weight is an index of 1, 2, 3, 4, 6 or 8 bits into a table of its group.
//!
//! Layout: per panel and 32 columns, first the low parts of the indices, then the high ones, in lines of 64 bytes; a line
//! is sixteen 32-bit lanes, one a row. A line has `32 / b` columns of parts of `b` bits: column `c` in byte `c % 4` of its
//! lane, from bit `c / 4 · b` on (as in [`super::LinearQ4`] and [`super::LinearQ8`]). 3 bits are two lines of 2-bit and one
//! of 1-bit parts, 6 bits four lines of 4-bit and two of 2-bit parts, others one part. Then the tables as f32, then those
//! for integer products: 64 high bytes, 64 low ones (sixteen for each four rows, or 64 entries for all), sixteen scales.
//!
//! Tables of up to sixteen values live in a register, larger ones are gathered from the cache. Where sixteen rows share no
//! table (groups of, say, 8 rows), each panel has its tables side by side and every lane looks in its own.

mod float;
mod integer;
mod lines;
mod shape;

pub use shape::LutShape;

use super::integer::{Activations, IntegerProduct};
#[cfg(target_arch = "x86_64")]
use super::tiles::{Job, TileProduct};
use super::{PANEL, Product, check};
use crate::buffer::{Buffer, round_up};
use crate::columns::Columns;
use crate::isa::Isa;
use float::View;
use integer::{IntegerTable, IntegerView, integer_table};
use lines::{parts, shift};
use std::ops::Range;

/// Packed palettes, a view of somebody's bytes (64-byte aligned for full speed).
#[derive(Clone, Copy, Debug)]
pub struct LinearLut<'a> {
    shape: LutShape,
    lines: &'a [[u8; 64]],
    tables: &'a [[u8; 4]],
    integers: &'a [IntegerTable],
    beside: usize,
}

impl<'a> LinearLut<'a> {
    /// How many bytes a matrix takes when packed.
    pub fn packed_len(shape: LutShape) -> usize {
        assert!(shape.supported(), "palettes of this shape are not supported: {shape:?}");
        shape.sections().iter().sum()
    }

    /// Packs row-major indices.
    ///
    /// `indices` has index `i` of the row-major matrix in the bits from `bits · i` on, the low bit first, as Core ML stores
    /// them. `tables` is `[row_groups, col_groups, 2^bits]`.
    pub fn pack(shape: LutShape, indices: &[u8], tables: &[f32], into: &mut [u8]) {
        let LutShape { rows, k, bits, row_groups, col_groups } = shape;
        assert_eq!(into.len(), Self::packed_len(shape), "pack: the destination has the wrong length");
        assert_eq!(indices.len(), (rows * k * bits).div_ceil(8), "pack: wrong number of index bytes for {shape:?}");
        assert_eq!(
            tables.len(),
            (row_groups * col_groups) << bits,
            "pack: wrong number of table entries for {shape:?}"
        );
        into.fill(0);
        let [line_len, table_len, _] = shape.sections();
        let (lines, rest) = into.split_at_mut(line_len);
        let (table_bytes, integers) = rest.split_at_mut(table_len);
        let lines = lines.as_chunks_mut::<64>().0;
        let panel = round_up(k, 32) / 32 * bits;
        for r in 0..rows {
            for c in 0..k {
                let at = (r * k + c) * bits;
                let pair = u16::from(indices[at / 8]) | u16::from(*indices.get(at / 8 + 1).unwrap_or(&0)) << 8;
                let index = u32::from(pair >> (at % 8)) & ((1 << bits) - 1);
                let lines = &mut lines[r / PANEL * panel + c / 32 * bits..][..bits];
                let mut first = 0;
                let mut low = 0;
                for part in parts(bits) {
                    let columns = 32 / part;
                    let (line, column) = (first + c % 32 / columns, c % columns);
                    let shift = shift(part, column);
                    let value = (index >> low & ((1 << part) - 1)) << shift;
                    let lane = &mut lines[line][r % PANEL * 4..][..4];
                    for (byte, new) in lane.iter_mut().zip(value.to_le_bytes()) {
                        *byte |= new;
                    }
                    first += part;
                    low += part;
                }
            }
        }
        let (beside, entries, group) = (shape.beside(), shape.entries(), shape.group_rows());
        for set in 0..shape.sets() {
            // The first row that the set serves.
            let row = if beside == 1 { set * group } else { set * PANEL };
            for cols in 0..col_groups {
                let at = (set * col_groups + cols) * entries;
                for entry in 0..entries {
                    let beside = if beside == 1 { 0 } else { entry >> bits };
                    let row = row / group * group + beside * group;
                    let value = tables[shape.table(row, cols) + (entry & ((1 << bits) - 1))];
                    table_bytes[(at + entry) * 4..][..4].copy_from_slice(&value.to_le_bytes());
                }
            }
        }
        let (integers, _) = integers.as_chunks_mut().0.as_chunks_mut::<3>();
        for (i, table) in integers.iter_mut().enumerate() {
            let (set, cols) = (i / col_groups, i % col_groups);
            // How many rows look in the same bytes.
            let each = if bits == 6 { PANEL } else { 4 };
            for first in (0..PANEL).step_by(each) {
                let row = if beside == 1 { set * group } else { (set * PANEL + first).min(rows - 1) };
                integer_table(&tables[shape.table(row, cols)..][..1 << bits], 4 * first..4 * (first + each), table);
            }
        }
    }

    /// Packs into a buffer of its own.
    pub fn packed(shape: LutShape, indices: &[u8], tables: &[f32]) -> Buffer {
        Buffer::filled(Self::packed_len(shape), |bytes| Self::pack(shape, indices, tables, bytes))
    }

    /// A view of bytes packed with the same `shape`, as long as [`Self::packed_len`] says.
    pub fn new(shape: LutShape, bytes: &'a [u8]) -> Self {
        assert_eq!(bytes.len(), Self::packed_len(shape), "packed weights have the wrong length");
        let [lines, tables, _] = shape.sections();
        let (lines, rest) = bytes.split_at(lines);
        let (tables, integers) = rest.split_at(tables);
        Self {
            shape,
            lines: lines.as_chunks().0,
            tables: tables.as_chunks().0,
            integers: integers.as_chunks().0.as_chunks().0,
            beside: shape.beside(),
        }
    }

    /// The rows of the matrix: the outputs of the layer.
    pub fn rows(&self) -> usize {
        self.shape.rows
    }

    /// The columns of the matrix: the inputs of the layer.
    pub fn k(&self) -> usize {
        self.shape.k
    }

    /// Whether [`Self::matmul_int8`] can be used: up to 4 bits, and groups of one table, or of a multiple of 4 rows; 6 bits,
    /// and one table or groups of a multiple of 16 rows.
    pub fn has_int8(&self) -> bool {
        self.shape.integers()
    }

    /// The product with quantized activations, in integers; see [`super::integer`]. Arguments as for [`Self::matmul`].
    pub fn matmul_int8(&self, isa: Isa, rows: Range<usize>, x: Activations<'_>, out: &mut [f32]) {
        let width = rows.len();
        self.matmul_int8_columns(isa, rows, x, Columns::new(out, width));
    }

    pub(super) fn matmul_int8_columns(&self, isa: Isa, rows: Range<usize>, x: Activations<'_>, out: Columns<'_>) {
        assert!(self.has_int8(), "LinearLut: there is no integer product for {:?}", self.shape);
        x.check("LinearLut", self.shape.k);
        check("LinearLut", (self.shape.rows, self.shape.k), &rows, x.n() * x.k(), x.n(), &out);
        match self.shape.bits {
            1 => isa.run(IntegerProduct { weights: IntegerView::<1>(*self), rows, x, out }),
            2 => isa.run(IntegerProduct { weights: IntegerView::<2>(*self), rows, x, out }),
            3 => isa.run(IntegerProduct { weights: IntegerView::<3>(*self), rows, x, out }),
            6 => isa.run(IntegerProduct { weights: IntegerView::<6>(*self), rows, x, out }),
            _ => isa.run(IntegerProduct { weights: IntegerView::<4>(*self), rows, x, out }),
        }
    }

    /// Whether another matrix differs in its numbers alone.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.shape == other.shape
    }

    #[cfg(target_arch = "x86_64")]
    pub(super) fn tiles(&self, up: Option<&Self>, job: Job<'_, '_>) {
        match self.shape.bits {
            1 => TileProduct { weights: IntegerView::<1>(*self), up: up.map(|up| IntegerView(*up)), job }.start(),
            2 => TileProduct { weights: IntegerView::<2>(*self), up: up.map(|up| IntegerView(*up)), job }.start(),
            3 => TileProduct { weights: IntegerView::<3>(*self), up: up.map(|up| IntegerView(*up)), job }.start(),
            6 => TileProduct { weights: IntegerView::<6>(*self), up: up.map(|up| IntegerView(*up)), job }.start(),
            _ => TileProduct { weights: IntegerView::<4>(*self), up: up.map(|up| IntegerView(*up)), job }.start(),
        }
    }

    /// `out[t, r - rows.start] = Σ x[t, c] · W[r, c]` for `r` in `rows`; see [`super::LinearF16::matmul`].
    pub fn matmul(&self, isa: Isa, rows: Range<usize>, x: &[f32], n: usize, out: &mut [f32]) {
        let width = rows.len();
        self.matmul_columns(isa, rows, x, n, Columns::new(out, width));
    }

    pub(super) fn matmul_columns(&self, isa: Isa, rows: Range<usize>, x: &[f32], n: usize, out: Columns<'_>) {
        check("LinearLut", (self.shape.rows, self.shape.k), &rows, x.len(), n, &out);
        let k = self.shape.k;
        macro_rules! run {
            ($bits:literal, $lookup:literal) => {
                isa.run(Product { weights: View::<$bits, $lookup>(*self), rows, k, x, n, out })
            };
        }
        match (self.shape.bits, self.beside) {
            (1, 1) => run!(1, true),
            (2, 1) => run!(2, true),
            (3, 1) => run!(3, true),
            (4, 1) => run!(4, true),
            (4, _) => run!(4, false),
            (6, 1) => run!(6, true),
            (6, _) => run!(6, false),
            (8, _) => run!(8, false),
            _ => run!(0, false),
        }
    }
}
