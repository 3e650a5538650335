//! Products of more than sixteen tokens by tiles (AMX).
//!
//! # Numbers
//!
//! The columns are cut into chunks of at most [`LONGEST`], see [`chunk`]. In a chunk, the values of a token become
//! `x ≈ s · (256 · x₁ + x₀)` with `s = max |x| / 32512`, the weights of a row `w ≈ r · (256 · w₁ + w₀)` with `r` a 32512th of
//! the largest that its scales and offsets allow; `x₁`, `x₀`, `w₁`, `w₀` are signed bytes. Weights of one scale a row are a byte
//! already: `w = r · w₀`, exactly.
//!
//! `y = Σ over chunks, in order, of s · r · 256 · (256 · Σ x₁ w₁ + Σ x₀ w₁ + Σ x₁ w₀)`, or `s · r · (256 · Σ x₁ w₀ + Σ x₀ w₀)`
//!
//! The sums are exact in 32-bit integers. What is left out, `Σ x₀ w₀`, is at most `2^14` a column, and by chance some 5500
//! times the root of their number, beside products of up to `32512²`. The bits of a token depend neither on the rows asked for
//! nor on the other tokens. They differ from those of [`super::integer`], which scales 32 columns at a time: there, sums must
//! leave the tiles for every 32 columns, which takes longer than the products.
//!
//! A token with a NaN or an infinity gives NaN, and so does a row with one among its scales; largest values below 1e-30 count as
//! zero.
//!
//! # Roofline
//!
//! A tile instruction multiplies 16 tokens by 16 rows by 64 columns in 16 cycles: sixteen times a vector's dot products a cycle.
//! Two panels of weights are made into bytes once for all tokens (about fifteen vector instructions for 64 weights), and then take
//! three products a tile (two where weights are bytes), each with a load of 1 KB. Loads from the first cache keep up with that,
//! those from the second take as long again: so weights stay in the first, in chunks of [`LONGEST`] columns, and activations pass
//! by it. Sums become floats while the next products run.

#[cfg(target_arch = "x86_64")]
mod ending;
#[cfg(target_arch = "x86_64")]
mod panel;
#[cfg(target_arch = "x86_64")]
mod product;
#[cfg(all(test, target_arch = "x86_64"))]
mod tests;

#[cfg(target_arch = "x86_64")]
pub(super) use product::{Job, TileProduct};

use super::Linear;
use crate::columns::Columns;
use crate::isa::{Amx, Isa, Kernel};
use crate::lanes::{Lanes, load_part};
use std::ops::Range;

/// Tokens of a tile.
pub const TOKENS: usize = 16;
/// Columns that share scales, at most: so many lines of two panels stay in the first cache while tokens go by.
pub const LONGEST: usize = 640;
/// Columns of a tile.
const COLUMNS: usize = 64;
/// The largest integer of two bytes whose high one, rounded up, is a byte.
const LARGEST: f32 = 32_512.0;

/// 64 columns of sixteen tokens: of each the high bytes, then the low ones.
type Step = [[[u8; COLUMNS]; 2]; TOKENS];
/// The scales of sixteen tokens.
type Scales = [[u8; 4]; TOKENS];

/// Quantized activations of `n` tokens for products by tiles: a view of somebody's bytes.
///
/// Layout: sixteen tokens after sixteen (the last ones filled up with zeros), of each a [`Step`] after the other, then their
/// scales, chunk by chunk.
#[derive(Clone, Copy, Debug)]
pub struct Tiles<'a> {
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "for tiles"))]
    amx: Amx,
    n: usize,
    k: usize,
    bytes: &'a [u8],
}

impl<'a> Tiles<'a> {
    /// The proof that [`Tiles`] of `n` tokens can be used and are worth it. Up to sixteen are left to [`super::integer`]: a token
    /// with guesses for those that follow gets the numbers that it has alone.
    pub fn fit(isa: Isa, n: usize) -> Option<Amx> {
        match isa {
            Isa::Amx(amx) if n > TOKENS => Some(amx),
            _ => None,
        }
    }

    /// How many bytes `n` tokens of `k` values take.
    pub const fn bytes(n: usize, k: usize) -> usize {
        n.div_ceil(TOKENS) * group(k)
    }

    /// Quantizes `x`, `[n, k]`, into `into`, [`Self::bytes`] long.
    pub fn quantize(amx: Amx, x: &[f32], n: usize, k: usize, into: &'a mut [u8]) -> Self {
        assert_eq!(x.len(), n * k, "quantize: {} values for {n} tokens of {k}", x.len());
        assert_eq!(into.len(), Self::bytes(n, k), "quantize: the destination has the wrong length");
        Isa::Amx(amx).run(Quantize { x, k, into });
        Self { amx, n, k, bytes: into }
    }

    /// A view of bytes that [`Self::quantize`] wrote for the same `n` and `k`.
    pub fn new(amx: Amx, n: usize, k: usize, bytes: &'a [u8]) -> Self {
        assert_eq!(bytes.len(), Self::bytes(n, k), "tiles: {} bytes for {n} tokens of {k}", bytes.len());
        Self { amx, n, k, bytes }
    }

    /// The tokens `range` of these, which starts at a multiple of [`TOKENS`] and ends at one or at the last token.
    pub fn tokens(&self, range: Range<usize>) -> Self {
        let Range { start, end } = range;
        assert!(start <= end && end <= self.n, "tiles: tokens {range:?} of {}", self.n);
        let whole = |t: usize| t.is_multiple_of(TOKENS) || t == self.n;
        assert!(whole(start) && whole(end), "tiles: tokens {range:?} are cut through {TOKENS} together");
        let bytes = &self.bytes[start / TOKENS * group(self.k)..end.div_ceil(TOKENS) * group(self.k)];
        Self { n: range.len(), bytes, ..*self }
    }

    /// Tokens.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Values per token.
    pub fn k(&self) -> usize {
        self.k
    }

    /// The steps and scales of each sixteen tokens.
    #[cfg(target_arch = "x86_64")]
    fn groups(&self) -> impl Iterator<Item = (&'a [Step], &'a [Scales])> {
        let steps = steps(self.k) * size_of::<Step>();
        self.bytes.chunks_exact(group(self.k)).map(move |group| {
            let (steps, scales) = group.split_at(steps);
            let steps = steps.as_chunks().0.as_chunks().0.as_chunks().0;
            (steps, scales.as_chunks().0.as_chunks().0)
        })
    }
}

/// What becomes of products before they are written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Then<'a> {
    /// Added: a number for each row that is asked for.
    pub bias: Option<&'a [f32]>,
    /// Added after that: a number for each token and row, and how far the numbers of a token are from those of the one before.
    pub added: Option<(&'a [f32], usize)>,
}

impl Linear<'_> {
    /// The product with activations as tiles, where [`Self::has_int8`]; else as [`Self::matmul_int8_columns`]. The rows behind
    /// these are asked for meanwhile.
    pub fn matmul_tiles_columns(&self, rows: Range<usize>, x: Tiles<'_>, then: Then<'_>, out: Columns<'_>) {
        self.tiles(None, rows, x, [then, Then::default()], out);
    }

    /// `silu(x · gateᵀ + b₀) · (x · upᵀ + b₁)` of the rows of two matrices where [`Self::gates`].
    pub fn gated_tiles_columns(
        [gate, up]: [&Self; 2],
        rows: Range<usize>,
        x: Tiles<'_>,
        biases: [Option<&[f32]>; 2],
        out: Columns<'_>,
    ) {
        gate.tiles(Some(up), rows, x, biases.map(|bias| Then { bias, added: None }), out);
    }

    /// Whether this and another matrix are alike enough for [`Self::gated_tiles_columns`].
    pub fn gates(&self, up: &Self) -> bool {
        match (self, up) {
            (Self::Q8(a), Self::Q8(b)) => a.is_like(b),
            (Self::Q4(a), Self::Q4(b)) => a.is_like(b),
            (Self::Lut(a), Self::Lut(b)) => a.is_like(b),
            _ => false,
        }
    }

    fn tiles(&self, up: Option<&Self>, rows: Range<usize>, x: Tiles<'_>, then: [Then<'_>; 2], out: Columns<'_>) {
        assert_eq!(x.k, self.k(), "tiles: activations have {} values a token, the matrix {} columns", x.k, self.k());
        assert!(self.has_int8(), "tiles: there is no integer product with these weights");
        assert!(up.is_none_or(|up| self.gates(up)), "tiles: two matrices of different kinds or shapes");
        super::check("tiles", (self.rows(), self.k()), &rows, x.n * x.k, x.n, &out);
        for Then { bias, added } in then {
            assert!(bias.is_none_or(|bias| bias.len() == rows.len()), "tiles: not a bias for each of {rows:?}");
            let long = |(added, stride): (&[f32], usize)| x.n == 0 || added.len() >= (x.n - 1) * stride + rows.len();
            assert!(added.is_none_or(long), "tiles: too few numbers to be added");
        }
        #[cfg(target_arch = "x86_64")]
        {
            let job = product::Job { rows, x, then, out };
            match (self, up) {
                (Self::Q8(w), None) => w.tiles(None, job),
                (Self::Q4(w), None) => w.tiles(None, job),
                (Self::Lut(w), None) => w.tiles(None, job),
                (Self::Q8(w), Some(Self::Q8(up))) => w.tiles(Some(up), job),
                (Self::Q4(w), Some(Self::Q4(up))) => w.tiles(Some(up), job),
                (Self::Lut(w), Some(Self::Lut(up))) => w.tiles(Some(up), job),
                _ => unreachable!("weights with integer products, as checked"),
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        unreachable!("there is no proof of AMX on this processor");
    }
}

/// Columns of a chunk of `k`, whole steps: as even as that allows.
pub const fn chunk(k: usize) -> usize {
    let chunks = k.div_ceil(LONGEST);
    if chunks == 0 { COLUMNS } else { k.div_ceil(chunks).next_multiple_of(COLUMNS) }
}

const fn steps(k: usize) -> usize {
    k.div_ceil(COLUMNS)
}

/// Bytes of sixteen tokens.
const fn group(k: usize) -> usize {
    steps(k) * size_of::<Step>() + k.div_ceil(chunk(k)) * size_of::<Scales>()
}

struct Quantize<'a, 'b> {
    x: &'a [f32],
    k: usize,
    into: &'b mut [u8],
}

impl Kernel for Quantize<'_, '_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Lanes>(self, s: S) {
        let k = self.k.max(1);
        let groups = self.into.chunks_exact_mut(group(self.k).max(1));
        for (x, into) in self.x.chunks(TOKENS * k).zip(groups) {
            let (bytes, scales) = into.split_at_mut(steps(self.k) * size_of::<Step>());
            let all: &mut [Step] = bytes.as_chunks_mut().0.as_chunks_mut().0.as_chunks_mut().0;
            let scales: &mut [Scales] = scales.as_chunks_mut().0.as_chunks_mut().0;
            if x.len() < TOKENS * k {
                all.as_flattened_mut().fill([[0; COLUMNS]; 2]);
                scales.fill([[0; 4]; TOKENS]);
            }
            for (t, x) in x.chunks_exact(k).enumerate() {
                let chunks = x.chunks(chunk(k)).zip(all.chunks_mut(chunk(k) / COLUMNS));
                for ((x, steps), scales) in chunks.zip(&mut *scales) {
                    scales[t] = quantize(s, x, steps, t).to_le_bytes();
                }
            }
        }
    }
}

/// Quantizes a chunk of token `t`; gives its scale.
#[inline(always)]
fn quantize<S: Lanes>(s: S, x: &[f32], into: &mut [Step], t: usize) -> f32 {
    let (mut largest, mut sum) = (s.splat(0.0), s.splat(0.0));
    for x in x.chunks(16) {
        let x = s.abs(load_part(s, x, 0.0));
        (largest, sum) = (s.max(largest, x), s.fma(x, s.splat(0.0), sum));
    }
    let largest = s.max_lane(largest);
    if s.sum(sum).is_nan() {
        into.iter_mut().for_each(|step| step[t] = [[0; COLUMNS]; 2]);
        return f32::NAN;
    }
    let (scale, factor) = if largest < 1e-30 { (0.0, 0.0) } else { (largest / LARGEST, LARGEST / largest) };
    let factor = s.splat(factor);
    for (x, step) in x.chunks(COLUMNS).zip(into) {
        let [high, low] = &mut step[t];
        for (i, (high, low)) in high.as_chunks_mut().0.iter_mut().zip(low.as_chunks_mut().0).enumerate() {
            let q = s.round(s.mul(load_part(s, x.get(16 * i..).unwrap_or(&[]), 0.0), factor));
            s.store_bytes(s.to_i32(q), low);
            s.store_bytes(s.shr(s.to_i32(s.add(q, s.splat(128.0))), 8), high);
        }
    }
    scale
}
