//! 4-bit integer weights.
//!
//! Layout: `[panel][group of 8 columns]` of 64 bytes: byte `4 · row + i` holds column `i` in its low and column `4 + i` in
//! its high four bits, as unsigned numbers (signed ones are moved up by 8). Then the scales as `[panel][block][16 rows]`,
//! then the offsets alike; each section starts on a cache line. With f16 scales and blocks of 32 this is 4.5 bits a
//! weight, 5 with offsets.
//!
//! One token moves 0.56 bytes a weight; unpacking costs a shift and a permutation (AVX-512), or a shift, a mask, a
//! conversion and a subtraction, per sixteen weights.

use super::blocks::{BlockShape, Scales};
use super::integer::{self, Activations, IntegerPanel, IntegerProduct, IntegerWeights};
#[cfg(target_arch = "x86_64")]
use super::tiles::{Job, TileProduct};
use super::{AHEAD, PANEL, Panel, Product, Weights, check};
use crate::buffer::{Buffer, round_up};
use crate::columns::Columns;
use crate::isa::Isa;
use crate::lanes::Lanes;
use std::ops::Range;

/// Bytes of eight columns of a panel.
const GROUP: usize = 64;

/// Packed 4-bit weights, a view of somebody's bytes (64-byte aligned for full speed).
#[derive(Clone, Copy, Debug)]
pub struct LinearQ4<'a> {
    pub(super) shape: BlockShape,
    pub(super) groups: &'a [[u8; GROUP]],
    pub(super) scales: &'a [u8],
    pub(super) offsets: &'a [u8],
    /// The offset of weights that have none of their own: the bias that made them unsigned.
    pub(super) bias: f32,
}

impl<'a> LinearQ4<'a> {
    /// How many bytes a matrix takes when packed.
    pub fn packed_len(shape: BlockShape) -> usize {
        shape.check();
        shape.sections(4).iter().sum()
    }

    /// Packs row-major weights.
    ///
    /// `weights` has element `i` of the row-major matrix in bits `4i % 8 ..` of byte `i / 2`, as Core ML stores them.
    /// `signed` tells int4 from uint4.
    /// `scales`, and `offsets` if the shape has them, are `[rows, k / block]`.
    pub fn pack(
        shape: BlockShape,
        signed: bool,
        weights: &[u8],
        scales: &[f32],
        offsets: Option<&[f32]>,
        into: &mut [u8],
    ) {
        let BlockShape { rows, k, .. } = shape;
        assert_eq!(weights.len(), (rows * k).div_ceil(2), "pack: {} bytes of weights for {rows} x {k}", weights.len());
        assert_eq!(into.len(), Self::packed_len(shape), "pack: the destination has the wrong length");
        into.fill(0);
        let [data_len, scale_len, _] = shape.sections(4);
        let (data, rest) = into.split_at_mut(data_len);
        let (scale_bytes, offset_bytes) = rest.split_at_mut(scale_len);
        shape.pack(scales, offsets, bias(signed), [scale_bytes, offset_bytes]);
        let groups = data.as_chunks_mut::<GROUP>().0;
        let panel = round_up(k, 32) / 8;
        for r in 0..rows {
            for c in 0..k {
                let byte = weights[(r * k + c) / 2];
                let nibble = if (r * k + c).is_multiple_of(2) { byte & 15 } else { byte >> 4 };
                let q = if signed { nibble ^ 8 } else { nibble };
                // Byte (row, c % 4) of a group: column c % 4 in the low four bits, column 4 + c % 4 in the high ones.
                let group = &mut groups[r / PANEL * panel + c / 8];
                group[r % PANEL * 4 + c % 4] |= if c % 8 < 4 { q } else { q << 4 };
            }
        }
    }

    /// Packs into a buffer of its own.
    pub fn packed(shape: BlockShape, signed: bool, weights: &[u8], scales: &[f32], offsets: Option<&[f32]>) -> Buffer {
        Buffer::filled(Self::packed_len(shape), |bytes| Self::pack(shape, signed, weights, scales, offsets, bytes))
    }

    /// A view of bytes packed with the same `shape` and `signed`, as long as [`Self::packed_len`] says.
    pub fn new(shape: BlockShape, signed: bool, bytes: &'a [u8]) -> Self {
        assert_eq!(bytes.len(), Self::packed_len(shape), "packed weights have the wrong length");
        let [data, scale, _] = shape.sections(4);
        let (data, rest) = bytes.split_at(data);
        let (scales, offsets) = rest.split_at(scale);
        Self { shape, groups: data.as_chunks().0, scales, offsets, bias: bias(signed) }
    }

    /// The rows of the matrix: the outputs of the layer.
    pub fn rows(&self) -> usize {
        self.shape.rows
    }

    /// The columns of the matrix: the inputs of the layer.
    pub fn k(&self) -> usize {
        self.shape.k
    }

    /// `out[t, r - rows.start] = Σ x[t, c] · W[r, c]` for `r` in `rows`; see [`super::LinearF16::matmul`].
    pub fn matmul(&self, isa: Isa, rows: Range<usize>, x: &[f32], n: usize, out: &mut [f32]) {
        let width = rows.len();
        self.matmul_columns(isa, rows, x, n, Columns::new(out, width));
    }

    pub(super) fn matmul_columns(&self, isa: Isa, rows: Range<usize>, x: &[f32], n: usize, out: Columns<'_>) {
        check("LinearQ4", (self.shape.rows, self.shape.k), &rows, x.len(), n, &out);
        let k = self.shape.k;
        if self.shape.offsets {
            isa.run(Product { weights: View::<true>(*self), rows, k, x, n, out });
        } else {
            isa.run(Product { weights: View::<false>(*self), rows, k, x, n, out });
        }
    }

    /// Whether [`Self::matmul_int8`] can be used: blocks are `k`, or multiples of 32.
    pub fn has_int8(&self) -> bool {
        !self.shape.narrow()
    }

    /// The product with quantized activations, in integers; see [`super::integer`]. Arguments as for [`Self::matmul`].
    pub fn matmul_int8(&self, isa: Isa, rows: Range<usize>, x: Activations<'_>, out: &mut [f32]) {
        let width = rows.len();
        self.matmul_int8_columns(isa, rows, x, Columns::new(out, width));
    }

    pub(super) fn matmul_int8_columns(&self, isa: Isa, rows: Range<usize>, x: Activations<'_>, out: Columns<'_>) {
        assert!(self.has_int8(), "LinearQ4: integer products need blocks of 32, these have {}", self.shape.block);
        x.check("LinearQ4", self.shape.k);
        check("LinearQ4", (self.shape.rows, self.shape.k), &rows, x.n() * x.k(), x.n(), &out);
        if self.shape.offsets {
            isa.run(IntegerProduct { weights: View::<true>(*self), rows, x, out });
        } else {
            isa.run(IntegerProduct { weights: View::<false>(*self), rows, x, out });
        }
    }

    /// Whether another matrix differs in its numbers alone.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.shape == other.shape && self.bias == other.bias
    }

    #[cfg(target_arch = "x86_64")]
    pub(super) fn tiles(&self, up: Option<&Self>, job: Job<'_, '_>) {
        if self.shape.offsets {
            TileProduct { weights: View::<true>(*self), up: up.map(|up| View(*up)), job }.start();
        } else {
            TileProduct { weights: View::<false>(*self), up: up.map(|up| View(*up)), job }.start();
        }
    }
}

fn bias(signed: bool) -> f32 {
    if signed { 8.0 } else { 0.0 }
}

/// Where integer sums start, for weights that are moved up or not.
fn start(moved: bool, _unsigned: bool) -> usize {
    if moved { integer::LESS_8 } else { integer::ZERO }
}

/// The weights, with what the inner loop must know at compile time.
#[derive(Clone, Copy)]
struct View<'a, const OFFSETS: bool>(LinearQ4<'a>);

impl<'a, const OFFSETS: bool> Weights for View<'a, OFFSETS> {
    type Panel<S: Lanes> = PanelView<'a, S::F, OFFSETS>;
    #[inline(always)]
    fn panel<S: Lanes>(self, s: S, index: usize) -> Self::Panel<S> {
        let w = self.0;
        let panel = w.shape.k.div_ceil(32);
        PanelView {
            groups: &w.groups.as_chunks().0[index * panel..][..panel],
            scales: Scales::panel(&w.shape, w.scales, w.offsets, index),
            fixed: fixed(s, w.bias),
            bias: w.bias,
            start: start(!OFFSETS && w.bias != 0.0, S::UNSIGNED),
        }
    }
}

struct PanelView<'a, F, const OFFSETS: bool> {
    groups: &'a [[[u8; GROUP]; 4]],
    scales: Scales<'a>,
    /// What takes the offset away when all weights have the same.
    fixed: F,
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "for tiles"))]
    bias: f32,
    /// Where integer sums start.
    start: usize,
}

#[inline(always)]
fn fixed<S: Lanes>(s: S, bias: f32) -> S::F {
    if S::FAST_LOOKUP { s.load(&std::array::from_fn(|i| i as f32 - bias)) } else { s.splat(bias) }
}

impl<'a, S: Lanes, const OFFSETS: bool> Panel<S> for PanelView<'a, S::F, OFFSETS> {
    type Lines = &'a [[u8; GROUP]; 4];
    /// Scale and offset.
    type Chunk = (S::F, S::F);
    type Group = S::I;
    #[inline(always)]
    fn narrow(&self) -> bool {
        self.scales.narrow
    }
    #[inline(always)]
    fn lines(&self, index: usize) -> Self::Lines {
        &self.groups[index]
    }
    #[inline(always)]
    fn chunk(&self, s: S, chunk: usize) -> Self::Chunk {
        let offset = if OFFSETS { self.scales.offset(s, chunk) } else { self.fixed };
        (self.scales.scale(s, chunk), offset)
    }
    #[inline(always)]
    fn prefetch(&self, s: S, lines: Self::Lines) {
        IntegerPanel::prefetch(self, s, lines, AHEAD);
    }
    #[inline(always)]
    fn group(&self, s: S, lines: Self::Lines, g: usize) -> S::I {
        s.iload(&lines[g])
    }
    #[inline(always)]
    fn column(&self, s: S, chunk: &Self::Chunk, group: &S::I, j: usize) -> S::F {
        let shift = (j as u32 % 4) * 8 + (j as u32 / 4) * 4;
        if OFFSETS || !S::FAST_LOOKUP {
            s.sub(s.nibble(*group, shift), chunk.1)
        } else {
            s.lookup16(self.fixed, s.shr(*group, shift))
        }
    }
    #[inline(always)]
    fn close(&self, s: S, chunk: &Self::Chunk, sum: S::F, total: S::F) -> S::F {
        s.fma(sum, chunk.0, total)
    }
}

impl<'a, const OFFSETS: bool> IntegerWeights for View<'a, OFFSETS> {
    type Integers<S: Lanes> = PanelView<'a, S::F, OFFSETS>;
    #[inline(always)]
    fn integers<S: Lanes>(self, s: S, index: usize) -> Self::Integers<S> {
        self.panel(s, index)
    }
}

impl<'a, S: Lanes, const OFFSETS: bool> IntegerPanel<S> for PanelView<'a, S::F, OFFSETS> {
    const NIBBLES: bool = true;
    const PLANES: usize = 1;
    const BYTES: usize = size_of::<[[u8; GROUP]; 4]>();
    /// Scale and offset.
    type Chunk = (S::F, S::F);
    type Lines = &'a [[u8; GROUP]; 4];
    #[inline(always)]
    fn start(&self) -> usize {
        self.start
    }
    #[inline(always)]
    fn bias(&self) -> f32 {
        self.bias
    }
    #[inline(always)]
    fn uniform(&self) -> bool {
        self.scales.uniform()
    }
    #[inline(always)]
    fn chunk(&self, s: S, block: usize) -> Self::Chunk {
        Panel::chunk(self, s, block)
    }
    #[inline(always)]
    fn lines(&self, block: usize) -> Self::Lines {
        &self.groups[block]
    }
    #[inline(always)]
    fn prefetch(&self, s: S, lines: Self::Lines, ahead: usize) {
        for line in 0..4 {
            s.prefetch(&lines[0], ahead + 64 * line);
        }
    }
    #[inline(always)]
    fn bytes(&self, s: S, _chunk: &Self::Chunk, lines: Self::Lines, g: usize) -> [[S::I; 2]; 2] {
        let group = s.iload(&lines[g]);
        [[s.low_nibbles(group), s.high_nibbles(group)]; 2]
    }
    #[inline(always)]
    fn scale(&self, chunk: &Self::Chunk) -> S::F {
        chunk.0
    }
    #[inline(always)]
    fn offset(&self, chunk: &Self::Chunk) -> Option<S::F> {
        OFFSETS.then_some(chunk.1)
    }
}
