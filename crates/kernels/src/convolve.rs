//! Convolutions without laying patches out: windows that follow each other read runs of floats that follow each other.
//!
//! An image is given as planes, one a channel, with its padding in them ([`Geometry`]). Where windows step by more than one, a
//! plane is cut into phases first (every other column, say), so that each tap of the window again reads a run. A tile of results is
//! then a product of [`TOGETHER`] channels of weights with runs of sixteen (AVX-512: twice sixteen) windows.
//!
//! Each result is `bias + Σ w · x`, one fused multiply-add after the other in the order of the weight, whatever the tile: so the
//! same bits on every instruction set and for any split of the work.
//!
//! # Roofline
//!
//! Multiplying is the limit: with AVX-512 a tile has 16 fused multiply-adds for 10 loads. What lies between the rows of results
//! (the padding) is computed and dropped. One channel a group has one load for each fused multiply-add.

use crate::buffer::Buffer;
use crate::columns::Columns;
use crate::isa::{Isa, Kernel};
use crate::lanes::{LANES, Lanes, load_part, store_part};

/// Channels of results that are computed together.
pub const TOGETHER: usize = 8;
/// Rows of results of one channel that are computed together.
const ROWS: usize = 4;

/// Where in an image the windows are.
#[derive(Clone, Copy, Debug)]
pub struct Geometry<'a> {
    /// From a channel to the next.
    pub plane: usize,
    /// From a row of windows to the next.
    pub pitch: usize,
    /// Windows in a row.
    pub width: usize,
    /// Where in its plane each tap of the first window is.
    pub taps: &'a [usize],
}

impl Geometry<'_> {
    /// Where window `index` is, from the first on.
    fn at(&self, index: usize) -> usize {
        if self.pitch == self.width { index } else { index / self.width * self.pitch + index % self.width }
    }

    /// The tap that is farthest into the plane.
    fn reach(&self) -> usize {
        self.taps.iter().copied().max().unwrap_or(0)
    }

    /// Checks that an image of so many channels holds `windows` windows.
    fn check(&self, image: usize, channels: usize, windows: usize) {
        let Self { plane, pitch, width, .. } = *self;
        assert!(width > 0 && pitch >= width, "convolve: rows of {width} windows, {pitch} apart");
        let last = self.reach() + self.at(windows.max(1) - 1);
        assert!(last < plane || windows == 0, "convolve: a window ends at {last} of {plane}");
        assert!(image >= channels * plane, "convolve: {image} values for {channels} channels of {plane}");
    }
}

/// Weights of `groups` of `rows` channels of results, `k` each: for each group `[tile][k][TOGETHER]` floats, the last tile filled
/// up with zeros.
pub fn pack(groups: usize, rows: usize, k: usize, w: &[f32]) -> Buffer {
    assert_eq!(w.len(), groups * rows * k, "pack: {} weights for {groups} groups of {rows} x {k}", w.len());
    let group = rows.div_ceil(TOGETHER) * k * TOGETHER;
    Buffer::filled(4 * groups * group, |bytes| {
        let weights = w.chunks_exact(k.max(1)).enumerate();
        weights.flat_map(|(row, w)| w.iter().enumerate().map(move |(i, w)| (row, i, w))).for_each(|(row, i, value)| {
            let at = row / rows * group + weight_at(k, row % rows, i);
            bytes[4 * at..][..4].copy_from_slice(&value.to_le_bytes());
        });
    })
}

/// Where weight `i` of channel `row` lies among packed ones.
pub fn weight_at(k: usize, row: usize, i: usize) -> usize {
    (row / TOGETHER * k + i) * TOGETHER + row % TOGETHER
}

/// All channels of results, rows of `out`, of its columns of windows from `first` on. `weights` are packed, for as many channels,
/// or more, as `out` has rows; `bias` has one number each. If rows of windows lie apart, columns are whole rows.
pub fn convolve(
    isa: Isa,
    (image, channels): (&[f32], usize),
    geometry: Geometry<'_>,
    weights: &[u8],
    bias: Option<&[f32]>,
    first: usize,
    out: Columns<'_>,
) {
    let (rows, k) = (out.rows(), channels * geometry.taps.len());
    geometry.check(image.len(), channels, first + out.width());
    let Geometry { pitch, width, .. } = geometry;
    let whole = |n: usize| pitch == width || n.is_multiple_of(width);
    assert!(whole(first) && whole(out.width()), "convolve: columns {first}, {} more, of rows of {width}", out.width());
    assert!(
        weights.len() >= rows.div_ceil(TOGETHER) * k * TOGETHER * 4,
        "convolve: {} bytes of weights",
        weights.len()
    );
    assert!(bias.is_none_or(|b| b.len() == rows), "convolve: another number of biases than channels");
    isa.run(Convolve { image, channels, geometry, weights: weights.as_chunks().0.as_chunks().0, bias, first, out });
}

type Weights = [[u8; 4]; TOGETHER];

struct Convolve<'a> {
    image: &'a [f32],
    channels: usize,
    geometry: Geometry<'a>,
    weights: &'a [Weights],
    bias: Option<&'a [f32]>,
    first: usize,
    out: Columns<'a>,
}

impl Kernel for Convolve<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Lanes>(self, s: S) {
        if S::TILE >= 8 { self.tiles::<S, 8, 2>(s) } else { self.tiles::<S, 4, 1>(s) }
    }
}

impl Convolve<'_> {
    /// By tiles of `T` channels and `V` vectors of windows.
    #[inline(always)]
    fn tiles<S: Lanes, const T: usize, const V: usize>(mut self, s: S) {
        if self.out.width() == 0 {
            return;
        }
        let start = self.geometry.at(self.first);
        let end = self.geometry.at(self.first + self.out.width() - 1) + 1;
        let reach = (self.channels.max(1) - 1) * self.geometry.plane + self.geometry.reach();
        for at in (start..end).step_by(V * LANES) {
            let whole = reach + at + V * LANES <= self.image.len();
            for row in (0..self.out.rows()).step_by(T) {
                let sums = match whole {
                    true => self.tile::<S, T, V, true>(s, row, at),
                    false => self.tile::<S, T, V, false>(s, row, at),
                };
                for t in 0..T.min(self.out.rows() - row) {
                    let mut values = [[0.0; LANES]; V];
                    for v in 0..V {
                        s.store(sums[t][v], &mut values[v]);
                    }
                    self.put(row + t, at - start, values.as_flattened());
                }
            }
        }
    }

    /// The image may end within the vectors unless `WHOLE`; where it cannot, no branch but a panic is between the sums.
    #[inline(always)]
    fn tile<S: Lanes, const T: usize, const V: usize, const WHOLE: bool>(
        &self,
        s: S,
        row: usize,
        at: usize,
    ) -> [[S::F; V]; T] {
        let k = self.channels * self.geometry.taps.len();
        let weights = &self.weights[row / TOGETHER * k..][..k];
        let half = row % TOGETHER;
        let mut sums = [[s.splat(0.0); V]; T];
        if let Some(bias) = self.bias {
            for t in 0..T {
                sums[t] = [s.splat(bias.get(row + t).copied().unwrap_or(0.0)); V];
            }
        }
        // No way out of these loops: the sums would be kept in memory for it.
        let taps = self.geometry.taps;
        for (channel, weights) in weights.chunks_exact(taps.len().max(1)).enumerate() {
            let plane = &self.image[channel * self.geometry.plane..];
            for (&tap, weights) in taps.iter().zip(weights) {
                let mut x = [s.splat(0.0); V];
                if WHOLE {
                    let runs = plane[tap + at..][..V * LANES].as_chunks().0;
                    for v in 0..V {
                        x[v] = s.load(&runs[v]);
                    }
                } else {
                    for v in 0..V {
                        x[v] = load_part(s, plane.get(tap + at + v * LANES..).unwrap_or(&[]), 0.0);
                    }
                }
                for t in 0..T {
                    let w = s.splat(f32::from_le_bytes(weights[(half + t) % TOGETHER]));
                    for v in 0..V {
                        sums[t][v] = s.fma(w, x[v], sums[t][v]);
                    }
                }
            }
        }
        sums
    }

    /// Results from `at` on behind the first one's place, without what lies between rows.
    #[inline(always)]
    fn put(&mut self, row: usize, at: usize, values: &[f32]) {
        let Geometry { pitch, width, .. } = self.geometry;
        let out = self.out.row(row);
        if pitch == width {
            let n = values.len().min(out.len() - at);
            out[at..at + n].copy_from_slice(&values[..n]);
            return;
        }
        let (mut y, mut x, mut i) = (at / pitch, at % pitch, 0);
        while i < values.len() && y * width < out.len() {
            if x < width {
                let n = (width - x).min(values.len() - i);
                out[y * width + x..][..n].copy_from_slice(&values[i..i + n]);
            }
            i += pitch - x;
            (y, x) = (y + 1, 0);
        }
    }
}

/// One channel of results from one channel of an image, all rows of windows. `weights` are floats, one for each tap.
pub fn convolve_plane(isa: Isa, image: &[f32], geometry: Geometry<'_>, weights: &[u8], bias: f32, out: &mut [f32]) {
    assert!(out.len().is_multiple_of(geometry.width.max(1)), "convolve: {} results, not whole rows", out.len());
    assert_eq!(weights.len(), 4 * geometry.taps.len(), "convolve: another number of weights than taps");
    geometry.check(image.len(), 1, out.len());
    isa.run(ConvolvePlane { image, geometry, weights: weights.as_chunks().0, bias, out });
}

struct ConvolvePlane<'a> {
    image: &'a [f32],
    geometry: Geometry<'a>,
    weights: &'a [[u8; 4]],
    bias: f32,
    out: &'a mut [f32],
}

impl Kernel for ConvolvePlane<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Lanes>(self, s: S) {
        let Geometry { pitch, width, .. } = self.geometry;
        for (i, out) in self.out.chunks_mut(ROWS * width).enumerate() {
            for x in (0..width).step_by(LANES) {
                let at = i * ROWS * pitch + x;
                let whole = self.geometry.reach() + at + (ROWS - 1) * pitch + LANES <= self.image.len();
                let sums = match whole {
                    true => rows::<S, true>(s, self.image, self.geometry, self.weights, self.bias, at),
                    false => rows::<S, false>(s, self.image, self.geometry, self.weights, self.bias, at),
                };
                for (out, sum) in out.chunks_exact_mut(width).zip(sums) {
                    store_part(s, sum, &mut out[x..width.min(x + LANES)]);
                }
            }
        }
    }
}

/// Sixteen windows of each of several rows.
#[inline(always)]
fn rows<S: Lanes, const WHOLE: bool>(
    s: S,
    image: &[f32],
    geometry: Geometry<'_>,
    weights: &[[u8; 4]],
    bias: f32,
    at: usize,
) -> [S::F; ROWS] {
    let mut sums = [s.splat(bias); ROWS];
    for (&tap, &w) in geometry.taps.iter().zip(weights) {
        let w = s.splat(f32::from_le_bytes(w));
        for r in 0..ROWS {
            let first = tap + at + r * geometry.pitch;
            let run = match WHOLE {
                true => s.load(&image[first..][..LANES].as_chunks().0[0]),
                false => load_part(s, image.get(first..).unwrap_or(&[]), 0.0),
            };
            sums[r] = s.fma(w, run, sums[r]);
        }
    }
    sums
}

#[cfg(test)]
mod tests;
