//! Rotary positions: the coordinates of each row in pairs (i, i + half), turned by the angles of the row's position.
//!
//! Spellings: the halves split, turned and joined again (see the converter's rope), and `x · cos + (−high, low) · sin`, with
//! tables for both halves. What lies past both halves stays. `x` may be any view whose rows lie without gaps.

use anemone_kernels::Isa;
use anemone_kernels::rope::rope_half;
use half::slice::HalfFloatSliceExt;
use smallvec::smallvec;

use super::pattern::{Bindings, Look, Pattern};
use super::{Argument, Fused};
use crate::case::Case;
use crate::layout::Layout;
use crate::lower::{Context, Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::spread::PIECE;
use crate::program::ValueId;
use crate::tensor::Tensor;
use crate::types::{DType, Opset, elements};

/// Rotary positions as a fused operation.
#[derive(Debug)]
pub struct Rope;

/// (…, tokens, size).
const X: usize = 0;
/// (…, tokens, half), or twice as wide with a table for each half; leading extents are 1.
const COS: usize = 1;
/// As `cos`.
const SIN: usize = 2;
/// The pairs of a row: half of what is turned.
const HALF: usize = 3;

impl Fused for Rope {
    fn op(&self) -> &'static dyn Op {
        &Rope
    }

    fn spellings(&self) -> Vec<Pattern> {
        use Pattern::{Any, Each, Either, Part, Scalar};
        let both = |kind, a: Pattern, b: Pattern| Either(kind, Box::new(a), Box::new(b));
        let part = |i| Part("split", i, vec![("x", Any("x"))]).named(["low", "high", "rest"][i]);
        let times = |x: Pattern, table| both("mul", x, Any(table));
        let first = Pattern::op("sub", [("x", times(part(0), "cos")), ("y", times(part(1), "sin"))]);
        let second = both("add", times(part(1), "cos"), times(part(0), "sin"));
        let joined = |all: Vec<Pattern>| Each("concat", "values", all).named("joined");
        let split = [vec![first.clone(), second.clone()], vec![first, second, part(2)]].map(joined);

        let slice = |name| Pattern::op("slice_by_index", [("x", Any("x"))]).named(name);
        let turned = joined(vec![both("mul", slice("high"), Scalar("minus")), slice("low")]);
        let whole = both("add", times(Any("x"), "cos"), both("mul", turned, Any("sin")));
        split.into_iter().chain([whole]).collect()
    }

    fn arguments(&self, found: &Bindings, graph: &dyn Look) -> Option<Vec<(usize, Argument)>> {
        let [x, cos, sin, low, high, joined] =
            ["x", "cos", "sin", "low", "high", "joined"].map(|name| found.value(name));
        let (x, cos, sin, low, high, joined) = (x?, cos?, sin?, low?, high?, joined?);
        let shape = |v: ValueId| graph.ty(v).shape.as_slice();
        let &[.., tokens, size] = shape(x) else { return None };
        let last = |v: ValueId, param: &str| {
            let axis = graph.constant(graph.argument(v, param)?)?;
            (axis == [-1.0] || axis == [shape(x).len() as f32 - 1.0]).then_some(())
        };
        last(joined, "axis")?;
        if graph.argument(joined, "interleave").is_some_and(|i| graph.constant(i) != Some(vec![0.0])) {
            return None;
        }
        let half = *shape(low).last()?;
        let widths = match found.scalar("minus") {
            None => {
                last(low, "axis")?;
                [half, half]
            }
            Some(minus) => {
                let [from, to] =
                    [0, half].map(|begin| is_slice(graph, if begin == 0 { low } else { high }, begin, half));
                (minus == -1.0 && 2 * half == size).then_some(())?;
                from?;
                to?;
                [size, 2 * half]
            }
        };
        let table = |v: ValueId| {
            let s = shape(v);
            elements(s) == tokens * widths[0]
                && s.last() == Some(&widths[0])
                && s.len() <= shape(x).len()
                && (s.len() < 2 || s[s.len() - 2] == tokens)
                && graph.ty(v).dtype.is_float()
        };
        let fits = table(cos) && table(sin) && shape(high).last() == Some(&half) && half > 0 && 2 * half <= size;
        let half = Argument::Const(i32::try_from(half).ok()?.into());
        fits.then(|| {
            vec![(X, Argument::Value(x)), (COS, Argument::Value(cos)), (SIN, Argument::Value(sin)), (HALF, half)]
        })
    }
}

/// Whether `slice` is the elements `begin..begin + half` of each row, and all rows.
fn is_slice(graph: &dyn Look, slice: ValueId, begin: usize, half: usize) -> Option<()> {
    let x = &graph.ty(graph.argument(slice, "x")?).shape;
    let (width, rank) = (*x.last()?, x.len());
    let list = |param: &str| graph.argument(slice, param).and_then(|v| graph.constant(v));
    let flag = |param: &str, axis: usize| list(param).is_some_and(|v| v.get(axis) == Some(&1.0));
    let (starts, ends) = (list("begin")?, list("end")?);
    if list("stride").is_some_and(|s| s.iter().any(|&s| s != 1.0)) || starts.len() != rank || ends.len() != rank {
        return None;
    }
    let at = |v: f32, n: usize| if v < 0.0 { v + n as f32 } else { v.min(n as f32) };
    for (axis, &n) in x.iter().enumerate() {
        let start = if flag("begin_mask", axis) { 0.0 } else { at(starts[axis], n) };
        let end = if flag("end_mask", axis) { n as f32 } else { at(ends[axis], n) };
        let (first, last) = if axis + 1 == rank { (begin, begin + half) } else { (0, n) };
        if start != first as f32 || end != last as f32 || flag("squeeze_mask", axis) {
            return None;
        }
    }
    (begin + half <= width).then_some(())
}

/// The tables of one row for the low and the high half.
fn halves(table: &[f32], row: usize, half: usize, wide: bool) -> [&[f32]; 2] {
    if wide {
        let (low, high) = table[2 * half * row..][..2 * half].split_at(half);
        [low, high]
    } else {
        [&table[half * row..][..half]; 2]
    }
}

/// Tokens, size, pairs, and whether the tables have both halves.
fn sizes(x: &dyn Operands) -> Result<(usize, usize, usize, bool), OpError> {
    let &[.., tokens, size] = x.shape(X) else { return Err(x.bad(X, "rows of tokens", x.shape(X))) };
    let (half, width) = (usize::try_from(x.i32(HALF)?).unwrap_or(0), x.shape(COS).last().copied().unwrap_or(0));
    let fits = half > 0 && 2 * half <= size && (width == half || width == 2 * half);
    if !fits || [COS, SIN].iter().any(|&t| elements(x.shape(t)) != tokens * width) {
        return Err(x.bad(COS, format!("a row of {half} for each of {tokens} tokens"), x.shape(COS)));
    }
    Ok((tokens, size, half, width != half))
}

impl Op for Rope {
    fn name(&self) -> &'static str {
        "rope"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::required("cos"), Param::required("sin"), Param::required("half")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        sizes(x)?;
        Ok(smallvec![x.ty(X)])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let (tokens, size, half, wide) = sizes(x)?;
        let (rows, cos, sin) = (x.f32s(X)?, x.f32s(COS)?, x.f32s(SIN)?);
        let out = out[0].f32s()?;
        out.copy_from_slice(rows);
        for (i, (row, out)) in rows.chunks_exact(size).zip(out.chunks_exact_mut(size)).enumerate() {
            let ([c, d], [s, t]) = (halves(cos, i % tokens, half, wide), halves(sin, i % tokens, half, wide));
            for p in 0..half {
                let (a, b) = (row[p], row[p + half]);
                out[p] = a * c[p] - b * s[p];
                out[p + half] = b * d[p] + a * t[p];
            }
        }
        Ok(())
    }

    fn lower(&self, x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        sizes(x).ok()?;
        Some(Box::new(Lowered(Isa::detect())))
    }

    fn cases(&self) -> Vec<Case> {
        let t = |shape: &[usize], v: &[f32]| Tensor::floats(DType::F32, shape, v);
        vec![
            Case::new("one table for both halves, and a rest")
                .input("x", t(&[2, 1, 3], &[1.0, 2.0, 9.0, 3.0, 4.0, 8.0]))
                .input("cos", t(&[1, 1], &[0.5]))
                .input("sin", t(&[1, 1], &[2.0]))
                .constant("half", 1)
                .expect(t(&[2, 1, 3], &[-3.5, 3.0, 9.0, -6.5, 8.0, 8.0])),
            Case::new("a table for each half, and one row for each token")
                .input("x", t(&[2, 2], &[1.0, 2.0, 3.0, 4.0]))
                .input("cos", t(&[2, 2], &[1.0, 2.0, 3.0, 4.0]))
                .input("sin", t(&[2, 2], &[0.0, 1.0, 1.0, 0.0]))
                .constant("half", 1)
                .expect(t(&[2, 2], &[1.0, 5.0, 5.0, 16.0])),
        ]
    }
}

#[derive(Debug)]
struct Lowered(Isa);

impl Kernel for Lowered {
    fn run(&self, x: &dyn Operands, out: &mut [Out<'_>], cx: &mut Context<'_>) -> Result<(), OpError> {
        let (tokens, size, half, wide) = sizes(x)?;
        let (cos, sin, layout) = (x.f32s(COS)?, x.f32s(SIN)?, x.layout_at(X, 0));
        let stored = x.halves_at(X, 0);
        let rows = if stored.is_some() { &[][..] } else { x.f32s(X)? };
        let piece = (PIECE / size).max(1);
        cx.workers.for_chunks(out[0].f32s()?, piece * size, &|i, out| {
            for (row, out) in (i * piece..).zip(out.chunks_exact_mut(size)) {
                let from = layout.map_or(row * size, |l| start(l, row));
                match stored {
                    Some(halves) => halves[from..from + size].convert_to_f32_slice(out),
                    None => out.copy_from_slice(&rows[from..from + size]),
                }
                let token = row % tokens;
                rope_half(self.0, out, size, halves(cos, token, half, wide), halves(sin, token, half, wide));
            }
        });
        Ok(())
    }

    fn accepts_view(&self, param: usize, layout: &Layout) -> bool {
        param == X && layout.strides.last() == Some(&1)
    }
}

/// Where row `row` of a view lies, rows counted along all axes but the last.
pub(super) fn start(layout: &Layout, mut row: usize) -> usize {
    let mut at = layout.offset;
    for (&n, &stride) in layout.shape.iter().zip(&layout.strides).rev().skip(1) {
        at += row % n * stride;
        row /= n;
    }
    at
}
