//! The kernel of attention: blocks of positions, or query heads, side by side.

use anemone_kernels::Isa;
use anemone_kernels::attention::{
    BLOCK, Element, Group, Keys, Mask, Queries, Rows, attend, attend_block, merge, part_len, scratch_len, tiles,
};
use anemone_kernels::isa::Amx;
use half::slice::HalfFloatSliceExt;
use std::ops::Range;

use super::{KEY, LAST, MASK, QUERY, SCALE, Sizes, VALUE, clear_blind};
use crate::layout::Layout;
use crate::lower::{Context, Kernel};
use crate::op::{OpError, Operands, Out};
use crate::tensor::Data;

/// The kernel. What runs side by side are blocks of positions of each key-value head for one token, query heads for several, and
/// some tokens of each key-value head by tiles.
#[derive(Debug)]
pub(super) struct Lowered {
    isa: Isa,
    exact: bool,
    scratch: usize,
}

impl Kernel for Lowered {
    fn run(&self, x: &dyn Operands, out: &mut [Out<'_>], cx: &mut Context<'_>) -> Result<(), OpError> {
        let sizes = Sizes::of(x)?;
        let out = out[0].f32s()?;
        match (x.halves_at(KEY, 0), x.halves_at(VALUE, 0)) {
            (Some(k), Some(v)) => {
                let (k, v) = (k.reinterpret_cast(), v.reinterpret_cast());
                match tiles::fit(self.isa, sizes.width).filter(|_| !self.exact) {
                    Some(amx) => by_tiles(amx, &Inputs::new(x, sizes, k, v)?, out, cx),
                    None => self.attend(&Inputs::new(x, sizes, k, v)?, out, cx),
                }
            }
            (None, None) => {
                let (Some(Data::F32(k)), Some(Data::F32(v))) = (x.data_at(KEY, 0), x.data_at(VALUE, 0)) else {
                    return Err(x.bad(KEY, "floating elements", x.dtype(KEY)));
                };
                self.attend(&Inputs::new(x, sizes, k, v)?, out, cx);
            }
            _ => {
                let what = "keys in a state with values outside, or the reverse,".to_owned();
                return Err(OpError::Unsupported { what });
            }
        }
        clear_blind(x, sizes, out)
    }

    fn scratch(&self) -> usize {
        self.scratch
    }

    fn accepts_view(&self, param: usize, layout: &Layout) -> bool {
        (param == KEY || param == VALUE) && layout.strides.last() == Some(&1) && layout.shape.len() >= 2
    }
}

impl Lowered {
    /// For `widest` and for fewer tokens, down to one.
    pub(super) fn new(widest: Sizes, exact: bool) -> Self {
        let Sizes { groups, rows, dim, len, width } = widest;
        let (isa, heads) = (Isa::detect(), rows / width);
        let one = groups * len.div_ceil(BLOCK) * (part_len(heads, dim) + scratch_len(heads, dim));
        let several = groups * heads * (width * dim + scratch_len(width, dim));
        let tiles = tiles::fit(isa, width).filter(|_| !exact).map_or(0, |_| Split::scratch(widest));
        Self { isa, exact, scratch: one.max(if width > 1 { several } else { 0 }).max(tiles) }
    }

    fn attend<E: Element + Sync>(&self, x: &Inputs<'_, E>, out: &mut [f32], cx: &mut Context<'_>) {
        let s = x.sizes;
        let heads = s.rows / s.width;
        if s.width == 1 {
            let (part, work) = (part_len(s.rows, s.dim), scratch_len(s.rows, s.dim));
            let blocks = x.group(0, 0..heads, 0..1).blocks();
            let pieces = &mut cx.scratch[..s.groups * blocks * (part + work)];
            cx.workers.for_chunks(pieces, part + work, &|i, piece| {
                let (part, work) = piece.split_at_mut(part);
                attend_block(self.isa, &x.group(i / blocks, 0..heads, 0..1), i % blocks, work, part);
            });
            let pieces = pieces.chunks_exact(blocks * (part + work));
            for (pieces, out) in pieces.zip(out.chunks_exact_mut(s.rows * s.dim)) {
                merge(self.isa, s.rows, s.dim, pieces, part + work, out);
            }
        } else {
            let (result, work) = (s.width * s.dim, scratch_len(s.width, s.dim));
            let pieces = &mut cx.scratch[..s.groups * heads * (result + work)];
            cx.workers.for_chunks(pieces, result + work, &|i, piece| {
                let (result, work) = piece.split_at_mut(result);
                let head = i % heads;
                attend(self.isa, &x.group(i / heads, head..head + 1, 0..s.width), work, result);
            });
            for (out, piece) in out.chunks_exact_mut(result).zip(pieces.chunks_exact(result + work)) {
                out.copy_from_slice(&piece[..result]);
            }
        }
    }
}

/// How the tokens of a key-value head are spread for tiles: keys and values are made ready for each piece anew, so that pieces
/// are of some hundred rows.
struct Split {
    pieces: usize,
    tokens: usize,
}

impl Split {
    fn new(s: Sizes) -> Self {
        let tokens = s.width.div_ceil(s.rows.div_ceil(256));
        Self { pieces: s.width.div_ceil(tokens), tokens }
    }

    /// f32 of results and scratch of each piece.
    fn size(&self, s: Sizes) -> usize {
        let rows = s.rows / s.width * self.tokens;
        rows * s.dim + tiles::scratch_len(rows, s.dim)
    }

    /// f32 that all pieces take, for up to as many tokens: the fewer there are, the fewer pieces, but they may be larger.
    fn scratch(widest: Sizes) -> usize {
        let heads = widest.rows / widest.width;
        let all = |width| {
            let s = Sizes { width, rows: heads * width, ..widest };
            let split = Self::new(s);
            s.groups * split.pieces * split.size(s)
        };
        (1..=widest.width).map(all).max().unwrap_or(0)
    }
}

fn by_tiles(amx: Amx, x: &Inputs<'_, u16>, out: &mut [f32], cx: &mut Context<'_>) {
    let s = x.sizes;
    let (heads, split) = (s.rows / s.width, Split::new(s));
    let tokens = |i: usize| i % split.pieces * split.tokens..s.width.min((i % split.pieces + 1) * split.tokens);
    let size = split.size(s);
    let pieces = &mut cx.scratch[..s.groups * split.pieces * size];
    cx.workers.for_chunks(pieces, size, &|i, piece| {
        let (result, work) = piece.split_at_mut(heads * tokens(i).len() * s.dim);
        tiles::attend(amx, &x.group(i / split.pieces, 0..heads, tokens(i)), work, result);
    });
    for (i, piece) in pieces.chunks_exact(size).enumerate() {
        let tokens = tokens(i);
        for (h, result) in piece.chunks_exact(tokens.len() * s.dim).take(heads).enumerate() {
            let row = i / split.pieces * s.rows + h * s.width + tokens.start;
            out[row * s.dim..][..result.len()].copy_from_slice(result);
        }
    }
}

/// The operands.
struct Inputs<'a, E> {
    sizes: Sizes,
    queries: &'a [f32],
    scale: f32,
    keys: (&'a [E], Heads<'a>),
    values: (&'a [E], Heads<'a>),
    mask: Mask<'a>,
    /// How many positions any token sees.
    seen: usize,
}

impl<'a, E: Element> Inputs<'a, E> {
    fn new(x: &'a dyn Operands, sizes: Sizes, keys: &'a [E], values: &'a [E]) -> Result<Self, OpError> {
        let mask = match (x.has(MASK), x.has(LAST)) {
            (true, _) => Mask::Additive { values: x.f32s(MASK)?, stride: sizes.len },
            (false, true) => Mask::UpTo { last: x.i32s(LAST)? },
            (false, false) => Mask::Full,
        };
        Ok(Self {
            sizes,
            queries: x.f32s(QUERY)?,
            scale: x.f32(SCALE)?,
            keys: (keys, Heads::new(x, KEY)),
            values: (values, Heads::new(x, VALUE)),
            mask,
            seen: sizes.seen(mask),
        })
    }

    /// Some query heads of key-value head `g`, and some tokens.
    fn group(&self, g: usize, heads: Range<usize>, tokens: Range<usize>) -> Group<'a, E> {
        let s = self.sizes;
        let ((keys, key_rows), (values, value_rows)) = (&self.keys, &self.values);
        Group {
            heads: heads.len(),
            width: tokens.len(),
            dim: s.dim,
            scale: self.scale,
            queries: Queries {
                data: &self.queries[(g * s.rows + heads.start * s.width + tokens.start) * s.dim..],
                head_stride: s.width * s.dim,
                token_stride: s.dim,
            },
            keys: Keys::Rows(Rows { data: &keys[key_rows.start(g)..], stride: key_rows.stride }),
            values: Rows { data: &values[value_rows.start(g)..], stride: value_rows.stride },
            len: self.seen,
            mask: match self.mask {
                Mask::UpTo { last } => Mask::UpTo { last: &last[tokens] },
                Mask::Additive { values, stride } => {
                    Mask::Additive { values: &values[tokens.start * stride..], stride }
                }
                mask => mask,
            },
        }
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
