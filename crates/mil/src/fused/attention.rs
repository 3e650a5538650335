//! Attention: `softmax(scale · query · keyᵀ + mask) · value`, over views of a state where the cache lies there.
//!
//! Keys and values may have fewer heads than queries; heads that share stand next to each other.
//!
//! A mask that a program computes from the positions of the tokens is not computed: the positions take its place.
//!
//! Numbers: columns at the end of the mask that no row may see are not read. A column is hidden from a row if its mask is
//! at most [`HIDDEN`]; a row that sees nothing at all sees everything, as softmax has it.

mod lowered;

use anemone_kernels::attention::Mask;
use smallvec::smallvec;

use super::pattern::{Bindings, Look, Pattern};
use super::{Argument, Fused};
use crate::case::Case;
use crate::constant::Const;
use crate::lower::{Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::program::ValueId;
use crate::tensor::Tensor;
use crate::types::{Class, DType, Opset, elements};
use lowered::Lowered;

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
/// In place of a mask: the last position that each token sees, all before it included.
const LAST: usize = 6;

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
        // Queries may be scaled before they meet the keys.
        let query = || {
            let scaled = Either("mul", Box::new(Any("query")), Box::new(Scalar("query factor")));
            OneOf(vec![scaled.reshaped().named("met query"), Any("query")])
        };
        let scores = || Pattern::op("matmul", [("x", query()), ("y", key())]).named("scores");
        let scaled = || {
            OneOf(vec![
                Either("mul", Box::new(scores()), Box::new(Scalar("factor"))),
                Pattern::op("real_div", [("x", scores()), ("y", Scalar("divisor"))]),
                scores(),
            ])
        };
        let masked = |mask| Either("add", Box::new(scaled().reshaped()), Box::new(mask)).named("masked");
        let past = |positions| Pattern::op("less_equal", [("x", Any("range")), ("y", positions)]);
        let column = Pattern::op("expand_dims", [("x", Any("positions"))]).named("column");
        let hidden = Pattern::op("logical_not", [("x", past(column))]);
        let hidden = Pattern::op("cast", [("x", hidden)]);
        let product = Either("mul", Box::new(hidden), Box::new(Scalar("hidden")));
        let choice = [("cond", past(Any("positions"))), ("a", Scalar("zero")), ("b", Scalar("hidden"))];
        let choice = Pattern::op("select", choice);
        let weights = |inner: Pattern| Pattern::op("softmax", [("x", inner)]).named("softmax").reshaped();
        let one = |extra: Option<(&'static str, Pattern)>| {
            let mut args = vec![("query", Any("query")), ("key", key()), ("value", value())];
            args.extend(extra);
            Pattern::Op("scaled_dot_product_attention", args).named("whole")
        };
        [masked(product), masked(choice), masked(Any("mask")), scaled().reshaped()]
            .into_iter()
            .map(|inner| Pattern::op("matmul", [("x", weights(inner)), ("y", value())]).named("mixed"))
            .chain([one(Some(("attn_mask", Any("mask")))), one(None)])
            .collect()
    }

    fn arguments(&self, found: &Bindings, graph: &dyn Look) -> Option<Vec<(usize, Argument)>> {
        let (query, key, value) = (found.value("query")?, found.value("key")?, found.value("value")?);
        let shape = |v| graph.ty(v).shape.as_slice();
        // As the products meet them.
        let met_query = found.value("met query").unwrap_or(query);
        let (met_key, met_value) =
            (repeated(found, graph, "repeated key", key)?, repeated(found, graph, "repeated value", value)?);
        let ([batch_q @ .., rows, dim], [batch_k @ .., len, dim_k], [batch_v @ .., len_v, dim_v]) =
            (shape(met_query), shape(met_key), shape(met_value))
        else {
            return None;
        };
        // Keys of one head may meet the queries of a whole group, spread by the products.
        let spread = elements(batch_k) == 1 && batch_k == batch_v;
        let together = spread || batch_q == batch_k && batch_q == batch_v;
        let same_rows = shape(query).last() == Some(dim) && elements(shape(query)) == elements(shape(met_query));
        let fits = same_rows && together && dim == dim_k && dim == dim_v && len == len_v;
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
        if !bare(result).eq(bare(met_query)) {
            return None;
        }
        let scale = scale * found.scalar("query factor").unwrap_or(1.0);
        let mut args = vec![
            (QUERY, Argument::Value(query)),
            (KEY, Argument::Value(key)),
            (VALUE, Argument::Value(value)),
            (SCALE, Argument::Const(Const::from(scale))),
        ];
        if let Some(positions) = found.value("positions") {
            let width = last_positions(found, graph, *len)?;
            if width != tokens || !rows.is_multiple_of(tokens) {
                return None;
            }
            args.push((LAST, Argument::Value(positions)));
        }
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

/// The tokens whose positions make a mask over `len` of them, if all that makes it is as it should be.
fn last_positions(found: &Bindings, graph: &dyn Look, len: usize) -> Option<usize> {
    let (range, positions) = (found.value("range")?, found.value("positions")?);
    let counts = graph.constant(range)?.iter().enumerate().all(|(i, &p)| p == i as f32);
    let tokens = elements(&graph.ty(positions).shape);
    // (tokens, 1) against (len), or one token.
    let aligned = match found.value("column") {
        Some(column) => graph.ty(column).shape[..] == [tokens, 1],
        None => tokens == 1,
    };
    let hides = found.scalar("hidden")? <= HIDDEN && found.scalar("zero").unwrap_or(0.0) == 0.0;
    let fits = counts && aligned && hides && graph.ty(range).shape[..] == [len];
    (fits && graph.ty(positions).dtype.class() == Class::Int).then_some(tokens)
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
            None if x.has(LAST) => Some(elements(x.shape(LAST)))
                .filter(|&width| width > 0 && rows.is_multiple_of(width))
                .ok_or_else(|| x.bad(LAST, format!("positions, as many as divide {rows}"), x.shape(LAST)))?,
            None => 1,
            Some(mask) => mask_rows(mask, *len)
                .filter(|&width| width > 0 && rows.is_multiple_of(width))
                .ok_or_else(|| x.bad(MASK, format!("rows of {len}, as many as divide {rows}"), mask))?,
        };
        Ok(Self { groups, rows, dim: *dim, len: *len, width })
    }

    /// How many positions any row sees.
    fn seen(&self, mask: Mask<'_>) -> usize {
        match mask {
            Mask::UpTo { last } => {
                let all = last.iter().map(|&p| usize::try_from(p).map_or(self.len, |p| self.len.min(p + 1)));
                all.max().unwrap_or(self.len)
            }
            Mask::Additive { values, .. } => {
                let mut seen = 0;
                for row in values.chunks_exact(self.len).take(self.width).rev() {
                    // No further than the most that another row sees; in pieces, which make for wide comparisons.
                    let ends =
                        (seen..self.len).rev().step_by(64).map(|last| (last + 1 - 64.min(last + 1 - seen), last + 1));
                    let sees = |m: &f32| *m > HIDDEN || m.is_nan();
                    let piece = |&(from, to): &(usize, usize)| row[from..to].iter().fold(false, |any, m| any | sees(m));
                    if let Some((from, to)) = ends.into_iter().find(piece) {
                        seen = row[from..to].iter().rposition(sees).map_or(seen, |i| from + i + 1);
                    } else if !row[..seen].iter().any(sees) {
                        return self.len;
                    }
                }
                seen
            }
            _ => self.len,
        }
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
                Param::optional("last"),
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
        let last = if x.has(LAST) { Some(x.i32s(LAST)?) } else { None };
        let hidden = |row: usize, p: usize| {
            last.is_some_and(|last| usize::try_from(last[row % s.width]).is_ok_and(|last| p > last))
        };
        let out = out[0].f32s()?;
        for row in 0..s.groups * s.rows {
            let (head, q) = (row / s.rows * s.len * s.dim, &q[row * s.dim..(row + 1) * s.dim]);
            let score = |p: usize| {
                let k = &k[head + p * s.dim..head + (p + 1) * s.dim];
                let dot: f32 = q.iter().zip(k).map(|(a, b)| a * b).sum();
                if hidden(row, p) {
                    return f32::NEG_INFINITY;
                }
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
        Some(Box::new(Lowered::new(Sizes::of(x).ok()?, x.exact())))
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
            case("each row sees up to its position")
                .constant("scale", 1.0f32)
                .input("last", Tensor::ints(DType::I32, &[2], &[0, 7]))
                .expect(Tensor::floats(DType::F32, &[1, 2, 1], &[10.0, mixed[1]])),
        ]
    }
}
