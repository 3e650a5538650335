//! f16 and f32 weights.
//!
//! Layout: `[panel][column][16 rows]`, little endian; columns padded with zeros to a multiple of 32.
//! One token moves 2 (or 4) bytes a weight: 32 (64) bytes per load, one conversion, one fused multiply-add.

use super::{AHEAD, PANEL, Panel, Product, Weights, check};
use crate::buffer::{Buffer, round_up};
use crate::columns::Columns;
use crate::isa::Isa;
use crate::lanes::Lanes;
use std::ops::Range;

macro_rules! float {
    ($name:ident, $element:ty, $size:literal, $what:literal, $load:ident) => {
        #[doc = concat!("Packed ", $what, " weights, a view of somebody's bytes (64-byte aligned for full speed).")]
        #[derive(Clone, Copy, Debug)]
        pub struct $name<'a> {
            groups: &'a [[[u8; PANEL * $size]; 8]],
            rows: usize,
            k: usize,
        }

        impl<'a> $name<'a> {
            /// How many bytes a matrix takes when packed.
            pub fn packed_len(rows: usize, k: usize) -> usize {
                rows.div_ceil(PANEL) * round_up(k, 32) * PANEL * $size
            }

            /// Packs the row-major `w[rows, k]`.
            pub fn pack(rows: usize, k: usize, w: &[$element], into: &mut [u8]) {
                assert_eq!(w.len(), rows * k, "pack: {} weights, {rows} x {k} need another number", w.len());
                assert_eq!(into.len(), Self::packed_len(rows, k), "pack: the destination has the wrong length");
                into.fill(0);
                let panel = round_up(k, 32) * PANEL * $size;
                for (r, row) in w.chunks_exact(k.max(1)).enumerate() {
                    let into = &mut into[r / PANEL * panel..][..panel];
                    for (c, value) in row.iter().enumerate() {
                        into[(c * PANEL + r % PANEL) * $size..][..$size].copy_from_slice(&value.to_le_bytes());
                    }
                }
            }

            /// Packs panel `index` of the row-major `w[rows, k]`, or of `w[k, rows]` if `turned`, into that panel's bytes:
            /// as many as a matrix of one panel takes.
            pub fn pack_panel(index: usize, rows: usize, k: usize, w: &[$element], turned: bool, into: &mut [u8]) {
                assert_eq!(w.len(), rows * k, "pack: {} weights, {rows} x {k} need another number", w.len());
                assert_eq!(into.len(), Self::packed_len(PANEL, k), "pack: the panel has the wrong length");
                let first = index * PANEL;
                assert!(first < rows, "pack: panel {index} of {rows} rows");
                let height = PANEL.min(rows - first);
                let lines = into.as_chunks_mut::<{ PANEL * $size }>().0;
                for (c, line) in lines.iter_mut().enumerate() {
                    let values = line.as_chunks_mut::<$size>().0.iter_mut().enumerate();
                    values.for_each(|(r, to)| {
                        let at = if turned { c * rows + first + r } else { (first + r) * k + c };
                        *to = if r < height && c < k { w[at].to_le_bytes() } else { [0; $size] };
                    });
                }
            }

            /// Packs into a buffer of its own.
            pub fn packed(rows: usize, k: usize, w: &[$element]) -> Buffer {
                Buffer::filled(Self::packed_len(rows, k), |bytes| Self::pack(rows, k, w, bytes))
            }

            /// A view of packed bytes, as long as [`Self::packed_len`] says.
            pub fn new(rows: usize, k: usize, bytes: &'a [u8]) -> Self {
                assert_eq!(bytes.len(), Self::packed_len(rows, k), "packed weights have the wrong length");
                Self { groups: bytes.as_chunks().0.as_chunks().0, rows, k }
            }

            /// The rows of the matrix: the outputs of the layer.
            pub fn rows(&self) -> usize {
                self.rows
            }

            /// The columns of the matrix: the inputs of the layer.
            pub fn k(&self) -> usize {
                self.k
            }

            /// `out[t, r - rows.start] = Σ x[t, c] · W[r, c]` for `r` in `rows`.
            ///
            /// `rows` starts at a multiple of [`PANEL`] and ends at one or at the last row. `x` is `[n, k]`, `out` is
            /// `[n, rows.len()]`, both without gaps. Panics when a length is wrong.
            pub fn matmul(&self, isa: Isa, rows: Range<usize>, x: &[f32], n: usize, out: &mut [f32]) {
                let width = rows.len();
                self.matmul_columns(isa, rows, x, n, Columns::new(out, width));
            }

            pub(super) fn matmul_columns(&self, isa: Isa, rows: Range<usize>, x: &[f32], n: usize, out: Columns<'_>) {
                check(stringify!($name), (self.rows, self.k), &rows, x.len(), n, &out);
                isa.run(Product { weights: *self, rows, k: self.k, x, n, out });
            }
        }

        impl<'a> Weights for $name<'a> {
            type Panel<S: Lanes> = $name<'a>;
            #[inline(always)]
            fn panel<S: Lanes>(self, _s: S, index: usize) -> Self {
                let panel = round_up(self.k, 32) / 8;
                Self { groups: &self.groups[index * panel..][..panel], ..self }
            }
        }

        impl<'a, S: Lanes> Panel<S> for $name<'a> {
            type Chunk = ();
            type Lines = &'a [[[u8; PANEL * $size]; 8]; 4];
            type Group = &'a [[u8; PANEL * $size]; 8];
            #[inline(always)]
            fn chunk(&self, _s: S, _chunk: usize) {}
            #[inline(always)]
            fn lines(&self, index: usize) -> Self::Lines {
                &self.groups.as_chunks().0[index]
            }
            #[inline(always)]
            fn prefetch(&self, s: S, lines: Self::Lines) {
                for line in 0..32 * PANEL * $size / 64 {
                    s.prefetch(&lines[0][0], AHEAD + 64 * line);
                }
            }
            #[inline(always)]
            fn group(&self, _s: S, lines: Self::Lines, g: usize) -> Self::Group {
                &lines[g]
            }
            #[inline(always)]
            fn column(&self, s: S, _chunk: &(), group: &Self::Group, j: usize) -> S::F {
                s.$load(&group[j])
            }
            #[inline(always)]
            fn close(&self, s: S, _chunk: &(), sum: S::F, total: S::F) -> S::F {
                s.add(total, sum)
            }
        }
    };
}

float!(LinearF16, u16, 2, "f16", load_f16_bytes);
float!(LinearF32, f32, 4, "f32", load_bytes);
