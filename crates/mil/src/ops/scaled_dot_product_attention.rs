//! `scaled_dot_product_attention`: `softmax(query · keyᵀ / √E + mask) · value` over the last two axes. A mask of truth
//! values keeps the keys where it is true; one of floats is added. A query whose every key is masked gives zeros, as in
//! PyTorch since 2.5.

use smallvec::smallvec;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::broadcast::{broadcast, runs};
use crate::ops::support::number::{add_scaled, dot};
use crate::tensor::{Data, Tensor};
use crate::types::{Class, DType, Opset};

pub(super) struct ScaledDotProductAttention;

const QUERY: usize = 0;
const KEY: usize = 1;
const VALUE: usize = 2;
const MASK: usize = 3;

/// What is added to the score of each key of one query, or which keys stay.
#[derive(Clone, Copy)]
enum Mask<'a> {
    None,
    Add(&'a [f32]),
    Keep(&'a [bool]),
}

impl Mask<'_> {
    /// The score of key `s`, or `None` if the key takes no part. A mask of extent 1 holds for every key.
    fn apply(self, s: usize, score: impl FnOnce() -> f32) -> Option<f32> {
        match self {
            Mask::None => Some(score()),
            Mask::Keep(m) => m[s.min(m.len() - 1)].then(score),
            Mask::Add(m) => {
                let bias = m[s.min(m.len() - 1)];
                (bias != f32::NEG_INFINITY).then(|| score() + bias)
            }
        }
    }
}

/// One query against keys and values of `e` and `row.len()` elements each, in one pass: the weights so far are relative to
/// the highest score so far.
fn attend(query: &[f32], keys: &[f32], values: &[f32], mask: Mask<'_>, row: &mut [f32]) {
    let (e, ev) = (query.len(), row.len());
    let scale = 1.0 / (e as f32).sqrt();
    row.fill(0.0);
    let (mut highest, mut total) = (f32::NEG_INFINITY, 0.0);
    for (s, value) in values.chunks_exact(ev).enumerate() {
        let score = mask.apply(s, || dot(query, &keys[s * e..(s + 1) * e]) * scale);
        let Some(score) = score.filter(|&s| s != f32::NEG_INFINITY) else { continue };
        if score > highest {
            let shrink = (highest - score).exp();
            total *= shrink;
            row.iter_mut().for_each(|r| *r *= shrink);
            highest = score;
        }
        let weight = (score - highest).exp();
        total += weight;
        add_scaled(row, weight, value);
    }
    if total != 0.0 {
        row.iter_mut().for_each(|r| *r /= total);
    }
}

impl Op for ScaledDotProductAttention {
    fn name(&self) -> &'static str {
        "scaled_dot_product_attention"
    }

    fn since(&self) -> Opset {
        Opset::CoreML8
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("query"), Param::required("key"), Param::required("value"), Param::optional("attn_mask")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let (mut q, k, v) = (x.ty(QUERY), x.shape(KEY), x.shape(VALUE));
        if !q.dtype.is_float() {
            return Err(x.bad(QUERY, "a floating tensor", q.dtype));
        }
        for param in [KEY, VALUE] {
            if x.dtype(param) != q.dtype {
                return Err(x.bad(param, format!("the query's type {}", q.dtype), x.dtype(param)));
            }
        }
        let rank = q.shape.len();
        if rank < 3 || k.len() != rank || k[..rank - 2] != q.shape[..rank - 2] || k[rank - 1] != q.shape[rank - 1] {
            return Err(x.bad(KEY, format!("(…, keys, E) for a query (…, queries, E), here {q}"), k));
        }
        if v.len() != rank || v[..rank - 1] != k[..rank - 1] {
            return Err(x.bad(VALUE, format!("(…, keys, EV) for a key (…, keys, E), here {k:?}"), v));
        }
        if x.has(MASK) {
            let (dtype, m) = (x.dtype(MASK), x.shape(MASK));
            if dtype.class() != Class::Bool && dtype.class() != Class::Float {
                return Err(x.bad(MASK, "truth values or floats", dtype));
            }
            let full = [&q.shape[..rank - 1], &[k[rank - 2]]].concat();
            if m.is_empty() || m.contains(&0) || broadcast(&full, m)?[..] != full[..] {
                return Err(x.bad(MASK, format!("a shape that broadcasts to {full:?}"), m));
            }
        }
        q.shape[rank - 1] = v[rank - 1];
        Ok(smallvec![q])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        if out[0].shape.contains(&0) {
            return Ok(());
        }
        let (q, k, v) = (x.f32s(QUERY)?, x.f32s(KEY)?, x.f32s(VALUE)?);
        let [ref rows @ .., e] = *x.shape(QUERY) else { return Err(x.bad(QUERY, "rank 3 or more", x.shape(QUERY))) };
        let (keys, ev) = (x.shape(KEY)[rows.len() - 1], x.shape(VALUE)[rows.len()]);
        let queries = rows[rows.len() - 1];
        let mask = if x.has(MASK) { Some(x.data(MASK)?) } else { None };
        let (mask_rows, width) = match if x.has(MASK) { x.shape(MASK) } else { &[] } {
            [rows @ .., width] => (rows, *width),
            [] => (&[][..], 0),
        };
        let r = out[0].f32s()?;
        runs(rows, [mask_rows], |run| {
            for t in 0..run.len {
                let (i, m) = (run.out + t, run.at[0] + t * run.step[0]);
                let batch = i / queries;
                let mask = match mask {
                    Some(Data::F32(all)) => Mask::Add(&all[m * width..(m + 1) * width]),
                    Some(Data::Bool(all)) => Mask::Keep(&all[m * width..(m + 1) * width]),
                    _ => Mask::None,
                };
                attend(
                    &q[i * e..(i + 1) * e],
                    &k[batch * keys * e..(batch + 1) * keys * e],
                    &v[batch * keys * ev..(batch + 1) * keys * ev],
                    mask,
                    &mut r[i * ev..(i + 1) * ev],
                );
            }
        });
        Ok(())
    }

    fn cases(&self) -> Vec<Case> {
        let f = |shape: &[usize], v: &[f32]| Tensor::floats(DType::F16, shape, v);
        // Scores are 0, ln 3 · (0 or 1) after the division by √4.
        let q = f(&[1, 2, 4], &[1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
        let ln9 = 2.0 * 3f32.ln();
        let k = f(&[1, 2, 4], &[ln9, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        let v = f(&[1, 2, 3], &[4.0, 0.0, 8.0, 0.0, 4.0, 8.0]);
        let case = |name| {
            Case::new(name).input("query", q.clone()).input("key", k.clone()).input("value", v.clone()).within(1e-5)
        };
        vec![
            case("without mask").expect(f(&[1, 2, 3], &[3.0, 1.0, 8.0, 2.0, 2.0, 8.0])),
            case("a mask of truth values keeps where it is true")
                .input("attn_mask", Tensor::bools(&[2, 2], &[true, false, false, true]))
                .expect(f(&[1, 2, 3], &[4.0, 0.0, 8.0, 0.0, 4.0, 8.0])),
            case("a mask of floats is added, the same for both queries")
                .input("attn_mask", f(&[1, 1, 2], &[0.0, 3f32.ln()]))
                .expect(f(&[1, 2, 3], &[2.0, 2.0, 8.0, 1.0, 3.0, 8.0])),
            case("a query without keys gives zeros")
                .input("attn_mask", f(&[1, 2, 2], &[f32::NEG_INFINITY, f32::NEG_INFINITY, 0.0, f32::NEG_INFINITY]))
                .expect(f(&[1, 2, 3], &[0.0, 0.0, 0.0, 4.0, 0.0, 8.0])),
            Case::new("heads, each with its mask")
                .input("query", f(&[1, 2, 1, 1], &[1.0, 1.0]))
                .input("key", f(&[1, 2, 2, 1], &[0.0, 3f32.ln(), 0.0, 0.0]))
                .input("value", f(&[1, 2, 2, 1], &[4.0, 8.0, 1.0, 2.0]))
                .input("attn_mask", Tensor::bools(&[2, 1, 2], &[true, true, false, true]))
                .within(1e-5)
                .expect(f(&[1, 2, 1, 1], &[7.0, 2.0])),
        ]
    }
}
