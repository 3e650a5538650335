//! The kernel of attention: blocks of positions, or query heads, side by side.

use anemone_kernels::Isa;
use anemone_kernels::attention::{
    Element, Group, Keys, Mask, Queries, Rows, attend, attend_block, merge, part_len, scratch_len,
};
use half::slice::HalfFloatSliceExt;

use super::{KEY, LAST, MASK, QUERY, SCALE, Sizes, VALUE, clear_blind};
use crate::layout::Layout;
use crate::lower::{Context, Kernel};
use crate::op::{OpError, Operands, Out};
use crate::tensor::Data;

/// The kernel: key-value heads and blocks of positions, or query heads, side by side.
#[derive(Debug)]
pub(super) struct Lowered {
    pub(super) isa: Isa,
    pub(super) scratch: usize,
}

impl Kernel for Lowered {
    fn run(&self, x: &dyn Operands, out: &mut [Out<'_>], cx: &mut Context<'_>) -> Result<(), OpError> {
        let sizes = Sizes::of(x)?;
        let out = out[0].f32s()?;
        match (x.halves_at(KEY, 0), x.halves_at(VALUE, 0)) {
            (Some(k), Some(v)) => self.attend(x, sizes, k.reinterpret_cast(), v.reinterpret_cast(), out, cx),
            (None, None) => {
                let (Some(Data::F32(k)), Some(Data::F32(v))) = (x.data_at(KEY, 0), x.data_at(VALUE, 0)) else {
                    return Err(x.bad(KEY, "floating elements", x.dtype(KEY)));
                };
                self.attend(x, sizes, k, v, out, cx)
            }
            _ => Err(OpError::Unsupported { what: "keys in a state with values outside, or the reverse,".to_owned() }),
        }
    }

    fn scratch(&self) -> usize {
        self.scratch
    }

    fn accepts_view(&self, param: usize, layout: &Layout) -> bool {
        (param == KEY || param == VALUE) && layout.strides.last() == Some(&1) && layout.shape.len() >= 2
    }
}

impl Lowered {
    fn attend<E: Element + Sync>(
        &self,
        x: &dyn Operands,
        s: Sizes,
        keys: &[E],
        values: &[E],
        out: &mut [f32],
        cx: &mut Context<'_>,
    ) -> Result<(), OpError> {
        let (q, scale) = (x.f32s(QUERY)?, x.f32(SCALE)?);
        let mask = match (x.has(MASK), x.has(LAST)) {
            (true, _) => Mask::Additive { values: x.f32s(MASK)?, stride: s.len },
            (false, true) => Mask::UpTo { last: x.i32s(LAST)? },
            (false, false) => Mask::Full,
        };
        let (k_rows, v_rows) = (Heads::new(x, KEY), Heads::new(x, VALUE));
        let len = s.seen(mask);
        let group = |g: usize, heads: usize, from: usize| Group {
            heads,
            width: s.width,
            dim: s.dim,
            scale,
            queries: Queries {
                data: &q[(g * s.rows + from * s.width) * s.dim..],
                head_stride: s.width * s.dim,
                token_stride: s.dim,
            },
            keys: Keys::Rows(Rows { data: &keys[k_rows.start(g)..], stride: k_rows.stride }),
            values: Rows { data: &values[v_rows.start(g)..], stride: v_rows.stride },
            len,
            mask,
        };
        let heads = s.rows / s.width;
        if s.width == 1 {
            let (part, work) = (part_len(s.rows, s.dim), scratch_len(s.rows, s.dim));
            let blocks = group(0, heads, 0).blocks();
            let pieces = &mut cx.scratch[..s.groups * blocks * (part + work)];
            cx.workers.for_chunks(pieces, part + work, &|i, piece| {
                let (part, work) = piece.split_at_mut(part);
                attend_block(self.isa, &group(i / blocks, heads, 0), i % blocks, work, part);
            });
            // The parts of a group, moved together, are merged in order.
            for (g, out) in out.chunks_exact_mut(s.rows * s.dim).enumerate() {
                let pieces = &mut pieces[g * blocks * (part + work)..(g + 1) * blocks * (part + work)];
                for b in 1..blocks {
                    pieces.copy_within(b * (part + work)..b * (part + work) + part, b * part);
                }
                merge(self.isa, s.rows, s.dim, &pieces[..blocks * part], out);
            }
        } else {
            let (result, work) = (s.width * s.dim, scratch_len(s.width, s.dim));
            let pieces = &mut cx.scratch[..s.groups * heads * (result + work)];
            cx.workers.for_chunks(pieces, result + work, &|i, piece| {
                let (result, work) = piece.split_at_mut(result);
                attend(self.isa, &group(i / heads, 1, i % heads), work, result);
            });
            for (out, piece) in out.chunks_exact_mut(result).zip(pieces.chunks_exact(result + work)) {
                out.copy_from_slice(&piece[..result]);
            }
        }
        clear_blind(x, s, out)
    }
}

/// Where the rows of each head lie.
struct Heads<'a> {
    layout: Option<&'a Layout>,
    stride: usize,
    size: usize,
}

impl<'a> Heads<'a> {
    fn new(x: &'a dyn Operands, param: usize) -> Self {
        let shape = x.shape(param);
        let (rows, dim) = (shape[shape.len() - 2], shape[shape.len() - 1]);
        let layout = x.layout_at(param, 0);
        Self { layout, stride: layout.map_or(dim, |l| l.strides[l.strides.len() - 2]), size: rows * dim }
    }

    fn start(&self, mut head: usize) -> usize {
        let Some(l) = self.layout else { return head * self.size };
        let mut at = l.offset;
        for (&n, &stride) in l.shape.iter().zip(&l.strides).rev().skip(2) {
            at += head % n * stride;
            head /= n;
        }
        at
    }
}
