//! Attention: `softmax(scale · query · keyᵀ + mask) · value`, over views of a state where the cache lies there.
//!
//! Keys and values may have fewer heads than queries; heads that share stand next to each other.
//!
//! Numbers: columns at the end of the mask that no row may see are not read. A column is hidden from a row if its mask is
//! at most [`HIDDEN`]; a row that sees nothing at all sees everything, as softmax has it.

use anemone_kernels::Isa;
use anemone_kernels::attention::{
    Element, Group, Keys, Mask, Queries, Rows, attend, attend_block, merge, part_len, scratch_len,
};
use half::slice::HalfFloatSliceExt;
use smallvec::smallvec;

use super::pattern::{Bindings, Look, Pattern};
use super::{Argument, Fused};
use crate::case::Case;
use crate::constant::Const;
use crate::layout::Layout;
use crate::lower::{Context, Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::program::ValueId;
use crate::tensor::{Data, Tensor};
use crate::types::{DType, Opset, elements};

/// A mask of at most this hides: the exponential of what is left is zero beside that of any score a model gives.
pub const HIDDEN: f32 = -1e4;

/// Attention as a fused operation.
#[derive(Debug)]
pub struct Attention;

const QUERY: usize = 0;
const KEY: usize = 1;
const VALUE: usize = 2;
const MASK: usize = 3;
const SCALE: usize = 4;
/// Whether a row that the mask hides all positions from, by -infinity, is zero; else it is NaN, as softmax has it.
const ZEROS: usize = 5;

impl Fused for Attention {
    fn op(&self) -> &'static dyn Op {
        &Attention
    }

    fn spellings(&self) -> Vec<Pattern> {
        use Pattern::{Any, Either, OneOf, Scalar};
        // Keys and values, or what repeats them for each head of a group.
        let shared = |name, repeated| {
            let tile = Pattern::op("tile", [("x", Any(name))]);
            OneOf(vec![Pattern::op("reshape", [("x", tile)]).named(repeated), Any(name)])
        };
        let key = || shared("key", "repeated key");
        let value = || shared("value", "repeated value");
        let scores = || Pattern::op("matmul", [("x", Any("query")), ("y", key())]).named("scores");
        let scaled = || {
            OneOf(vec![
                Either("mul", Box::new(scores()), Box::new(Scalar("factor"))),
                Pattern::op("real_div", [("x", scores()), ("y", Scalar("divisor"))]),
                scores(),
            ])
        };
        let masked = Either("add", Box::new(scaled().reshaped()), Box::new(Any("mask"))).named("masked");
        let weights = |inner: Pattern| Pattern::op("softmax", [("x", inner)]).named("softmax").reshaped();
        let one = |extra: Option<(&'static str, Pattern)>| {
            let mut args = vec![("query", Any("query")), ("key", key()), ("value", value())];
            args.extend(extra);
            Pattern::Op("scaled_dot_product_attention", args).named("whole")
        };
        [masked, scaled().reshaped()]
            .into_iter()
            .map(|inner| Pattern::op("matmul", [("x", weights(inner)), ("y", value())]).named("mixed"))
            .chain([one(Some(("attn_mask", Any("mask")))), one(None)])
            .collect()
    }

    fn arguments(&self, found: &Bindings, graph: &dyn Look) -> Option<Vec<(usize, Argument)>> {
        let (query, key, value) = (found.value("query")?, found.value("key")?, found.value("value")?);
        let shape = |v| graph.ty(v).shape.as_slice();
        // As the products meet them.
        let (met_key, met_value) =
            (repeated(found, graph, "repeated key", key)?, repeated(found, graph, "repeated value", value)?);
        let ([batch_q @ .., rows, dim], [batch_k @ .., len, dim_k], [batch_v @ .., len_v, dim_v]) =
            (shape(query), shape(met_key), shape(met_value))
        else {
            return None;
        };
        // Keys of one head may meet the queries of a whole group, spread by the products.
        let spread = elements(batch_k) == 1 && batch_k == batch_v;
        let together = spread || batch_q == batch_k && batch_q == batch_v;
        let fits = together && dim == dim_k && dim == dim_v && len == len_v;
        if !fits || shape(key) != shape(value) || *dim == 0 || *len == 0 {
            return None;
        }
        let (scale, tokens, result) = match found.value("whole") {
            Some(whole) => {
                if graph.argument(whole, "attn_mask") != found.value("mask") {
                    return None;
                }
                (1.0 / (*dim as f32).sqrt(), *rows, whole)
            }
            None => spelled_out(found, graph, *len)?,
        };
        // The weights may have been reshaped on the way: they must meet the values as the scores left the keys.
        let bare = |v| shape(v).iter().skip_while(|&&n| n == 1);
        if !bare(result).eq(bare(query)) {
            return None;
        }
        let mut args = vec![
            (QUERY, Argument::Value(query)),
            (KEY, Argument::Value(key)),
            (VALUE, Argument::Value(value)),
            (SCALE, Argument::Const(Const::from(scale))),
        ];
        if let Some(mask) = found.value("mask") {
            // One row for each token, the same for all heads, and the tokens of a head one after another.
            let width = mask_rows(shape(mask), *len)?;
            let aligned = elements(shape(mask)) == width * len
                && (width == tokens || width == 1)
                && rows.is_multiple_of(tokens)
                && graph.ty(mask).dtype.is_float();
            if !aligned {
                return None;
            }
            args.push((MASK, Argument::Value(mask)));
            if found.value("whole").is_some() {
                args.push((ZEROS, Argument::Const(Const::from(true))));
            }
        }
        Some(args)
    }
}

/// The value that repeats `inner` for each head of a group, if one was found, and checked; else `inner`.
fn repeated(found: &Bindings, graph: &dyn Look, name: &str, inner: ValueId) -> Option<ValueId> {
    let Some(outer) = found.value(name) else { return Some(inner) };
    let shape = |v| graph.ty(v).shape.as_slice();
    let ([front @ .., 1, len, dim], [front_t @ .., _, len_t, dim_t], [.., len_o, dim_o]) =
        (shape(inner), shape(graph.argument(outer, "x")?), shape(outer))
    else {
        return None;
    };
    // Only the last of the leading axes is repeated, so heads that share keys stand next to each other.
    let same = front == front_t && [len, dim] == [len_t, dim_t] && [len, dim] == [len_o, dim_o];
    same.then_some(outer)
}

/// Scale, tokens of a head and result of attention in several operations.
fn spelled_out(found: &Bindings, graph: &dyn Look, len: usize) -> Option<(f32, usize, ValueId)> {
    let [scores, softmax, mixed] = ["scores", "softmax", "mixed"].map(|n| found.value(n));
    let (scores, softmax, mixed) = (scores?, softmax?, mixed?);
    let shape = |v| graph.ty(v).shape.as_slice();
    let flag = |v, param: &str| graph.argument(v, param).is_some_and(|f| graph.constant(f) == Some(vec![1.0]));
    let plain = !flag(scores, "transpose_x") && flag(scores, "transpose_y");
    if !plain || flag(mixed, "transpose_x") || flag(mixed, "transpose_y") {
        return None;
    }
    let rank = shape(softmax).len() as f32;
    let axis = graph.argument(softmax, "axis").map_or(Some(vec![-1.0]), |a| graph.constant(a))?;
    let along_last = axis == [-1.0] || axis == [rank - 1.0];
    if !along_last || shape(softmax).last() != Some(&len) {
        return None;
    }
    let scale = found.scalar("factor").or(found.scalar("divisor").map(|d| 1.0 / d)).unwrap_or(1.0);
    let tokens = match found.value("masked").map(shape) {
        Some(masked) if elements(masked) != elements(shape(scores)) => return None,
        Some([.., tokens, _]) => *tokens,
        Some(_) => return None,
        None => 1,
    };
    Some((scale, tokens, mixed))
}

/// Rows of a mask over `len` positions, the same for all heads.
fn mask_rows(shape: &[usize], len: usize) -> Option<usize> {
    match shape {
        [columns] if *columns == len => Some(1),
        [.., width, columns] if *columns == len => Some(*width),
        _ => None,
    }
}

/// The sizes of one application.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    /// Key-value heads of all batches.
    groups: usize,
    /// Query rows of each: those of all heads that share it.
    rows: usize,
    dim: usize,
    len: usize,
    /// Rows of the mask; 1 without one.
    width: usize,
}

impl Sizes {
    fn of(x: &dyn Operands) -> Result<Self, OpError> {
        let (q, k, v) = (x.shape(QUERY), x.shape(KEY), x.shape(VALUE));
        let ([.., dim], [batch @ .., len, dim_k]) = (q, k) else {
            return Err(x.bad(QUERY, "rows of numbers", q));
        };
        let (groups, all) = (elements(batch), elements(&q[..q.len() - 1]));
        if dim != dim_k || k != v || *len == 0 || *dim == 0 || all > 0 && (groups == 0 || !all.is_multiple_of(groups)) {
            return Err(OpError::mismatch(
                "keys and values for the heads of the queries",
                format!("{q:?}, {k:?} and {v:?}"),
            ));
        }
        let rows = all / groups.max(1);
        let width = match x.has(MASK).then(|| x.shape(MASK)) {
            None => 1,
            Some(mask) => mask_rows(mask, *len)
                .filter(|&width| width > 0 && rows.is_multiple_of(width))
                .ok_or_else(|| x.bad(MASK, format!("rows of {len}, as many as divide {rows}"), mask))?,
        };
        Ok(Self { groups, rows, dim: *dim, len: *len, width })
    }

    /// How many positions any row sees.
    fn seen(&self, mask: Option<&[f32]>) -> usize {
        let Some(mask) = mask else { return self.len };
        let last = |row: &[f32]| row.iter().rposition(|&m| m > HIDDEN || m.is_nan()).map_or(self.len, |i| i + 1);
        mask.chunks_exact(self.len).take(self.width).map(last).max().unwrap_or(self.len)
    }
}

/// Zeros in the rows that see nothing, where the operation says so.
fn clear_blind(x: &dyn Operands, s: Sizes, out: &mut [f32]) -> Result<(), OpError> {
    if !x.has(MASK) || !x.bool_or(ZEROS, false)? {
        return Ok(());
    }
    for (t, mask) in x.f32s(MASK)?.chunks_exact(s.len).take(s.width).enumerate() {
        if mask.iter().all(|&m| m == f32::NEG_INFINITY) {
            out.chunks_exact_mut(s.dim).skip(t).step_by(s.width).for_each(|row| row.fill(0.0));
        }
    }
    Ok(())
}

impl Op for Attention {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::required("query"),
                Param::required("key"),
                Param::required("value"),
                Param::optional("mask"),
                Param::required("scale"),
                Param::optional("zeros"),
            ]
        }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        Sizes::of(x)?;
        Ok(smallvec![x.ty(QUERY)])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let s = Sizes::of(x)?;
        let (q, k, v, scale) = (x.f32s(QUERY)?, x.f32s(KEY)?, x.f32s(VALUE)?, x.f32(SCALE)?);
        let mask = if x.has(MASK) { Some(x.f32s(MASK)?) } else { None };
        let out = out[0].f32s()?;
        for row in 0..s.groups * s.rows {
            let (head, q) = (row / s.rows * s.len * s.dim, &q[row * s.dim..(row + 1) * s.dim]);
            let score = |p: usize| {
                let k = &k[head + p * s.dim..head + (p + 1) * s.dim];
                let dot: f32 = q.iter().zip(k).map(|(a, b)| a * b).sum();
                dot * scale + mask.map_or(0.0, |m| m[row % s.width * s.len + p])
            };
            let top = (0..s.len).map(score).fold(f32::NEG_INFINITY, f32::max);
            let total: f32 = (0..s.len).map(|p| (score(p) - top).exp()).sum();
            let out = &mut out[row * s.dim..(row + 1) * s.dim];
            out.fill(0.0);
            for p in 0..s.len {
                let weight = (score(p) - top).exp() / total;
                let v = &v[head + p * s.dim..head + (p + 1) * s.dim];
                out.iter_mut().zip(v).for_each(|(o, v)| *o += weight * v);
            }
        }
        clear_blind(x, s, out)
    }

    fn lower(&self, x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        let Sizes { groups, rows, dim, len, width } = Sizes::of(x).ok()?;
        let per_block = part_len(rows, dim) + scratch_len(rows, dim);
        let blocks = len.div_ceil(anemone_kernels::attention::BLOCK);
        let per_head = width * dim + scratch_len(width, dim);
        let scratch = if width == 1 { groups * blocks * per_block } else { groups * rows / width * per_head };
        Some(Box::new(Lowered { isa: Isa::detect(), scratch }))
    }

    fn cases(&self) -> Vec<Case> {
        let q = Tensor::floats(DType::F32, &[1, 2, 1], &[1.0, -1.0]);
        let k = Tensor::floats(DType::F32, &[1, 2, 1], &[0.0, 1.0]);
        let v = Tensor::floats(DType::F32, &[1, 2, 1], &[10.0, 20.0]);
        let case = |name| {
            Case::new(name).input("query", q.clone()).input("key", k.clone()).input("value", v.clone()).within(1e-5)
        };
        let e = std::f32::consts::E;
        let mixed = [(10.0 + 20.0 * e) / (1.0 + e), (10.0 * e + 20.0) / (1.0 + e)];
        vec![
            case("all seen").constant("scale", 1.0f32).expect(Tensor::floats(DType::F32, &[1, 2, 1], &mixed)),
            case("the second position hidden from the first row")
                .input("mask", Tensor::floats(DType::F32, &[2, 2], &[0.0, -1e4, 0.0, 0.0]))
                .constant("scale", 1.0f32)
                .expect(Tensor::floats(DType::F32, &[1, 2, 1], &[10.0, mixed[1]])),
        ]
    }
}

/// The kernel: key-value heads and blocks of positions, or query heads, side by side.
#[derive(Debug)]
struct Lowered {
    isa: Isa,
    scratch: usize,
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
        let mask = if x.has(MASK) { Some(x.f32s(MASK)?) } else { None };
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
            mask: mask.map_or(Mask::Full, |values| Mask::Additive { values, stride: s.len }),
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
