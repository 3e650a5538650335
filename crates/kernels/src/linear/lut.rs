//! Palettes: each weight is an index of 1, 2, 3, 4, 6 or 8 bits into a table of its group.
//!
//! Layout: per panel and 32 columns, first the low parts of the indices, then the high ones, in lines of 64 bytes; a line
//! is sixteen 32-bit lanes, one a row. A line has `32 / b` columns of parts of `b` bits: column `c` in byte `c % 4` of its
//! lane, from bit `c / 4 · b` on (as in [`super::LinearQ4`] and [`super::LinearQ8`]). 3 bits are two lines of 2-bit and one
//! of 1-bit parts, 6 bits four lines of 4-bit and two of 2-bit parts, others one part. Then the tables as f32, then those
//! for integer products: 64 high bytes, 64 low ones (sixteen for each four rows), sixteen scales.
//!
//! Tables of up to sixteen values live in a register, larger ones are gathered from the cache. Where sixteen rows share no
//! table (groups of, say, 8 rows), each panel has its tables side by side and every lane looks in its own.

use super::integer::{self, Activations, IntegerPanel, IntegerProduct, IntegerWeights};
use super::{AHEAD, PANEL, Panel, Product, Weights, check};
use crate::buffer::{ALIGN, Buffer, round_up};
use crate::isa::Isa;
use crate::lanes::Lanes;
use std::ops::Range;

/// The shape of a palettized matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LutShape {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub k: usize,
    /// Bits of an index: 1, 2, 3, 4, 6 or 8.
    pub bits: usize,
    /// How many groups the rows are cut into, each with tables of its own; divides `rows`.
    pub row_groups: usize,
    /// How many groups the columns are cut into: 1, or a divisor of `k` that leaves multiples of 32.
    pub col_groups: usize,
}

impl LutShape {
    /// Whether the kernels can compute with this shape.
    pub fn supported(&self) -> bool {
        let rows = self.row_groups > 0 && self.rows.is_multiple_of(self.row_groups);
        let cols = self.col_groups == 1
            || (self.col_groups > 0 && self.k.is_multiple_of(self.col_groups) && self.group_cols().is_multiple_of(32));
        rows && cols && matches!(self.bits, 1 | 2 | 3 | 4 | 6 | 8)
    }

    fn group_rows(&self) -> usize {
        self.rows / self.row_groups
    }

    fn group_cols(&self) -> usize {
        self.k / self.col_groups
    }

    fn panels(&self) -> usize {
        self.rows.div_ceil(PANEL)
    }

    /// How many tables a panel needs side by side, a power of two; 1 if all its rows share one.
    fn beside(&self) -> usize {
        let group = self.group_rows();
        if self.row_groups == 1 || group.is_multiple_of(PANEL) {
            return 1;
        }
        if PANEL.is_multiple_of(group) { PANEL / group } else { ((PANEL - 1) / group + 2).next_power_of_two() }
    }

    /// Whether there are tables for integer products: up to 4 bits, and no four rows of a panel with two tables.
    fn integers(&self) -> bool {
        self.bits <= 4 && (self.row_groups == 1 || self.group_rows().is_multiple_of(4))
    }

    /// Entries of one table as stored: small ones are repeated to fill a register.
    fn entries(&self) -> usize {
        if self.beside() == 1 { (1 << self.bits).max(16) } else { self.beside() << self.bits }
    }

    /// How many sets of tables there are: one a group of rows where panels lie within groups, else one a panel.
    fn sets(&self) -> usize {
        if self.beside() == 1 { self.row_groups } else { self.panels() }
    }

    /// The lengths of the three sections: indices, tables, tables for integer products.
    fn sections(&self) -> [usize; 3] {
        let sets = self.sets() * self.col_groups;
        [
            self.panels() * round_up(self.k, 32) * 2 * self.bits,
            round_up(sets * self.entries() * 4, ALIGN),
            if self.integers() { sets * size_of::<IntegerTable>() } else { 0 },
        ]
    }

    /// Where in the given tables that of `row`, a group of columns, and a set starts.
    fn table(&self, row: usize, cols: usize) -> usize {
        let group = (row / self.group_rows()).min(self.row_groups - 1);
        (group * self.col_groups + cols) << self.bits
    }
}

/// 64 high bytes, 64 low bytes, sixteen scales.
type IntegerTable = [[u8; 64]; 3];

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
            for quarter in 0..4 {
                let row = if beside == 1 { set * group } else { (set * PANEL + quarter * 4).min(rows - 1) };
                quarter_table(&tables[shape.table(row, cols)..][..1 << bits], quarter, table);
            }
        }
    }

    /// Packs into a buffer of its own.
    pub fn packed(shape: LutShape, indices: &[u8], tables: &[f32]) -> Buffer {
        let mut buffer = Buffer::zeroed(Self::packed_len(shape));
        Self::pack(shape, indices, tables, &mut buffer);
        buffer
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

    /// Whether [`Self::matmul_int8`] can be used: up to 4 bits, and groups of one table, or of a multiple of 4 rows.
    pub fn has_int8(&self) -> bool {
        self.shape.integers()
    }

    /// The product with quantized activations, in integers; see [`super::integer`]. Arguments as for [`Self::matmul`].
    pub fn matmul_int8(&self, isa: Isa, rows: Range<usize>, x: Activations<'_>, out: &mut [f32]) {
        assert!(self.has_int8(), "LinearLut: there is no integer product for {:?}", self.shape);
        x.check("LinearLut", self.shape.k);
        check("LinearLut", (self.shape.rows, self.shape.k), &rows, x.n() * x.k(), x.n(), out.len());
        match self.shape.bits {
            1 => isa.run(IntegerProduct { weights: IntegerView::<1>(*self), rows, x, out }),
            2 => isa.run(IntegerProduct { weights: IntegerView::<2>(*self), rows, x, out }),
            3 => isa.run(IntegerProduct { weights: IntegerView::<3>(*self), rows, x, out }),
            _ => isa.run(IntegerProduct { weights: IntegerView::<4>(*self), rows, x, out }),
        }
    }

    /// `out[t, r - rows.start] = Σ x[t, c] · W[r, c]` for `r` in `rows`; see [`super::LinearF16::matmul`].
    pub fn matmul(&self, isa: Isa, rows: Range<usize>, x: &[f32], n: usize, out: &mut [f32]) {
        check("LinearLut", (self.shape.rows, self.shape.k), &rows, x.len(), n, out.len());
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

/// Makes the table of four rows 16-bit integers: `256 · high + low`, both bytes moved up by 128, times the scale.
fn quarter_table(values: &[f32], quarter: usize, into: &mut IntegerTable) {
    let largest = values.iter().fold(0.0_f32, |m, v| if v.abs() <= m { m } else { v.abs() });
    let scale = largest / 32_512.0;
    for entry in 0..16 {
        let value = values[entry % values.len()];
        // A table with a NaN or an infinity has a scale of its kind.
        let integer = if scale > 0.0 && scale.is_finite() { (value / scale).round_ties_even() as i32 } else { 0 };
        let high = (integer + 128) >> 8;
        into[0][quarter * 16 + entry] = (high + 128) as u8;
        into[1][quarter * 16 + entry] = (integer - 256 * high + 128) as u8;
        if entry < 4 {
            into[2][quarter * 16 + entry * 4..][..4].copy_from_slice(&scale.to_le_bytes());
        }
    }
}

/// The parts that indices of `bits` are cut into, the low one first.
fn parts(bits: usize) -> impl Iterator<Item = usize> {
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
const fn shift(bits: usize, column: usize) -> u32 {
    (column % 4 * 8 + column / 4 * bits) as u32
}

/// The weights, with what the inner loop must know at compile time. 0 bits stand for "as the shape says": rare kinds are
/// not worth a kernel each.
#[derive(Clone, Copy)]
struct View<'a, const BITS: usize, const LOOKUP: bool>(LinearLut<'a>);

impl<'a, const BITS: usize, const LOOKUP: bool> Weights for View<'a, BITS, LOOKUP> {
    type Panel<S: Lanes> = PanelView<'a, S::I, BITS, LOOKUP>;
    #[inline(always)]
    fn panel<S: Lanes>(self, s: S, index: usize) -> Self::Panel<S> {
        let LinearLut { shape, lines, tables, beside, .. } = self.0;
        let panel = round_up(shape.k, 32) / 32 * shape.bits;
        let entries = if beside == 1 { (1 << shape.bits).max(16) } else { beside << shape.bits };
        let group = shape.group_rows();
        let set = if beside == 1 { index * PANEL / group } else { index };
        let first = index * PANEL / group;
        let base: [u8; 64] = if beside == 1 {
            [0; 64]
        } else {
            let mut bytes = [0; 64];
            for (lane, bytes) in bytes.as_chunks_mut().0.iter_mut().enumerate() {
                let table = (index * PANEL + lane).min(shape.rows - 1) / group - first;
                *bytes = ((table << shape.bits) as u32).to_le_bytes();
            }
            bytes
        };
        PanelView {
            lines: &lines[index * panel..][..panel],
            tables: &tables[set * shape.col_groups * entries..][..shape.col_groups * entries],
            bits: shape.bits,
            entries,
            chunks: shape.group_cols().div_ceil(32),
            base: s.iload(&base),
        }
    }
}

struct PanelView<'a, I, const BITS: usize, const LOOKUP: bool> {
    lines: &'a [[u8; 64]],
    tables: &'a [[u8; 4]],
    bits: usize,
    entries: usize,
    /// Chunks that share a table.
    chunks: usize,
    /// What leads each lane to its own table.
    base: I,
}

impl<I, const BITS: usize, const LOOKUP: bool> PanelView<'_, I, BITS, LOOKUP> {
    #[inline(always)]
    fn bits(&self) -> usize {
        if BITS == 0 { self.bits } else { BITS }
    }
}

impl<'a, S: Lanes, const BITS: usize, const LOOKUP: bool> Panel<S> for PanelView<'a, S::I, BITS, LOOKUP> {
    /// The table: in a register, and in memory.
    type Chunk = (S::F, &'a [[u8; 4]]);
    type Lines = &'a [[u8; 64]];
    /// The low and the high parts, shifted so that the first column of the group is at the bottom.
    type Group = [S::I; 2];
    #[inline(always)]
    fn chunk(&self, s: S, chunk: usize) -> Self::Chunk {
        let table = &self.tables[chunk / self.chunks * self.entries..][..self.entries];
        match table.as_flattened().first_chunk() {
            Some(first) if LOOKUP && BITS <= 4 => (s.load_bytes(first), table),
            _ => (s.splat(0.0), table),
        }
    }
    #[inline(always)]
    fn lines(&self, index: usize) -> Self::Lines {
        &self.lines[index * self.bits()..][..self.bits()]
    }
    #[inline(always)]
    fn prefetch(&self, s: S, lines: Self::Lines) {
        for line in 0..self.bits() {
            s.prefetch(&lines[0], AHEAD + 64 * line);
        }
    }
    #[inline(always)]
    fn group(&self, s: S, lines: Self::Lines, g: usize) -> [S::I; 2] {
        group(s, lines, self.bits(), g)
    }
    #[inline(always)]
    fn column(&self, s: S, chunk: &Self::Chunk, group: &[S::I; 2], j: usize) -> S::F {
        let [low, high] = *group;
        let index = match self.bits() {
            1 | 2 | 4 => part(s, low, self.bits(), j),
            3 => s.ior(mask(s, part(s, low, 2, j), 2), s.shl(part(s, high, 1, j), 2)),
            6 => s.ior(mask(s, part(s, low, 4, j), 4), s.shl(mask(s, part(s, high, 2, j), 2), 4)),
            _ => s.shr(group[j / 4], j as u32 % 4 * 8),
        };
        if LOOKUP && BITS == 6 {
            match chunk.1.first_chunk() {
                Some(table) => s.lookup64(table, index),
                None => s.splat(0.0),
            }
        } else if LOOKUP {
            // Bits above the index may be anything: the table repeats.
            s.lookup16(chunk.0, index)
        } else {
            s.gather(chunk.1, s.ior(mask(s, index, self.bits()), self.base))
        }
    }
    #[inline(always)]
    fn close(&self, s: S, _chunk: &Self::Chunk, sum: S::F, total: S::F) -> S::F {
        s.add(total, sum)
    }
}

/// The `j`-th column of a line of parts of `bits`, at the bottom of its lane.
#[inline(always)]
fn part<S: Lanes>(s: S, a: S::I, bits: usize, j: usize) -> S::I {
    s.shr(a, shift(bits, j))
}

#[inline(always)]
fn mask<S: Lanes>(s: S, a: S::I, bits: usize) -> S::I {
    s.iand(a, s.isplat((1 << bits) - 1))
}

/// Eight columns: the low and the high parts, shifted so that the first column is at the bottom.
#[inline(always)]
fn group<S: Lanes>(s: S, lines: &[[u8; 64]], bits: usize, g: usize) -> [S::I; 2] {
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

/// The weights for integer products, with the bits known at compile time.
#[derive(Clone, Copy)]
struct IntegerView<'a, const BITS: usize>(LinearLut<'a>);

impl<'a, const BITS: usize> IntegerWeights for IntegerView<'a, BITS> {
    type Integers<S: Lanes> = IntegerPanelView<'a, BITS>;
    #[inline(always)]
    fn integers<S: Lanes>(self, _s: S, index: usize) -> Self::Integers<S> {
        let LinearLut { shape, lines, integers, beside, .. } = self.0;
        let panel = shape.k.div_ceil(32) * BITS;
        let set = if beside == 1 { index * PANEL / shape.group_rows() } else { index };
        IntegerPanelView {
            lines: &lines[index * panel..][..panel],
            tables: &integers[set * shape.col_groups..][..shape.col_groups],
            chunks: shape.group_cols().div_ceil(32),
            start: if S::UNSIGNED { integer::LESS_128 } else { integer::ZERO },
        }
    }
}

struct IntegerPanelView<'a, const BITS: usize> {
    lines: &'a [[u8; 64]],
    tables: &'a [IntegerTable],
    /// Chunks that share a table.
    chunks: usize,
    start: usize,
}

impl<'a, S: Lanes, const BITS: usize> IntegerPanel<S> for IntegerPanelView<'a, BITS> {
    const NIBBLES: bool = false;
    const PLANES: usize = 2;
    /// High bytes, low bytes, scales.
    type Chunk = (S::I, S::I, S::F);
    type Lines = &'a [[u8; 64]];
    #[inline(always)]
    fn start(&self) -> usize {
        self.start
    }
    #[inline(always)]
    fn chunk(&self, s: S, block: usize) -> Self::Chunk {
        let set = if self.tables.len() == 1 { 0 } else { block / self.chunks };
        let [high, low, scale] = &self.tables[set];
        (s.iload(high), s.iload(low), s.load_bytes(scale))
    }
    #[inline(always)]
    fn lines(&self, block: usize) -> Self::Lines {
        &self.lines[block * BITS..][..BITS]
    }
    #[inline(always)]
    fn prefetch(&self, s: S, lines: Self::Lines) {
        for line in 0..BITS {
            s.prefetch(&lines[0], AHEAD + 64 * line);
        }
    }
    #[inline(always)]
    fn bytes(&self, s: S, chunk: &Self::Chunk, lines: Self::Lines, g: usize) -> [[S::I; 2]; 2] {
        let [first, second] = indices::<S, BITS>(s, group(s, lines, BITS, g));
        let (high, low, _) = *chunk;
        [
            [s.lookup_bytes(high, first), s.lookup_bytes(high, second)],
            [s.lookup_bytes(low, first), s.lookup_bytes(low, second)],
        ]
    }
    #[inline(always)]
    fn scale(&self, chunk: &Self::Chunk) -> S::F {
        chunk.2
    }
    #[inline(always)]
    fn offset(&self, _chunk: &Self::Chunk) -> Option<S::F> {
        None
    }
}

/// The indices of columns 0..4 and 4..8 of a group, a byte each.
#[inline(always)]
fn indices<S: Lanes, const BITS: usize>(s: S, [low, high]: [S::I; 2]) -> [S::I; 2] {
    let parts = if BITS == 3 { 2 } else { BITS };
    let mask = s.isplat(((1 << parts) - 1) * 0x0101_0101);
    let mut both = [s.iand(low, mask), s.iand(s.shr(low, parts as u32), mask)];
    if BITS == 3 {
        let one = s.isplat(0x0101_0101);
        both[0] = s.ior(both[0], s.shl(s.iand(high, one), 2));
        both[1] = s.ior(both[1], s.shl(s.iand(s.shr(high, 1), one), 2));
    }
    both
}
