//! Root mean square norm: `x · weight / √(mean(x²) + ε)` over the last axis.
//!
//! Spellings: the plain one, and the one that half floats survive (see the converter's norm), where x is first divided by
//! its largest magnitude m and ε by m². Both are the same number; a row below the smallest m that is divided by differs
//! by no more than its own size.

use anemone_kernels::Isa;
use anemone_kernels::norm::rms_norm;
use smallvec::smallvec;

use super::pattern::{Bindings, Look, Pattern};
use super::{Argument, Fused};
use crate::case::Case;
use crate::constant::Const;
use crate::lower::{Context, Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::spread::PIECE;
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

/// The norm as a fused operation.
#[derive(Debug)]
pub struct RmsNorm;

const X: usize = 0;
const WEIGHT: usize = 1;
const EPSILON: usize = 2;

impl Fused for RmsNorm {
    fn op(&self) -> &'static dyn Op {
        &RmsNorm
    }

    fn spellings(&self) -> Vec<Pattern> {
        use Pattern::{Any, Either, Scalar};
        let both = |kind, a: Pattern, b: Pattern| Either(kind, Box::new(a), Box::new(b));
        let mean = |square: Pattern| Pattern::op("reduce_mean", [("x", square)]).named("mean");
        let root = |sum: Pattern| Pattern::op("rsqrt", [("x", sum)]).named("rsqrt");

        let abs = Pattern::op("abs", [("x", Any("x"))]);
        let largest = both("maximum", Pattern::op("reduce_max", [("x", abs)]).named("largest"), Scalar("tiny"));
        let scaled = Pattern::op("real_div", [("x", Any("x")), ("y", largest.named("magnitude"))]).named("scaled");
        let small = Pattern::op("real_div", [("x", Scalar("root_epsilon")), ("y", Any("magnitude"))]).named("small");
        let sum = both("add", mean(both("mul", scaled.clone(), Any("scaled"))), both("mul", small, Any("small")));
        let safe = both("mul", scaled, root(sum));

        let square = Pattern::OneOf(vec![
            Pattern::op("pow", [("x", Any("x")), ("y", Scalar("two"))]),
            Pattern::op("square", [("x", Any("x"))]),
            both("mul", Any("x"), Any("x")),
        ]);
        let plain = both("mul", Any("x"), root(both("add", mean(square), Scalar("epsilon"))));
        [safe, plain].map(|normed| both("mul", normed, Any("weight"))).into()
    }

    fn arguments(&self, found: &Bindings, graph: &dyn Look) -> Option<Vec<(usize, Argument)>> {
        let (x, weight, root) = (found.value("x")?, found.value("weight")?, found.value("rsqrt")?);
        if found.scalar("two").is_some_and(|two| two != 2.0) {
            return None;
        }
        let shape = &graph.ty(x).shape;
        let width = *shape.last()?;
        let rank = shape.len() as f32;
        for reduction in [found.value("mean"), found.value("largest")].into_iter().flatten() {
            let axes = graph.constant(graph.argument(reduction, "axes")?)?;
            if axes != [-1.0] && axes != [rank - 1.0] || graph.ty(reduction).shape.len() != shape.len() {
                return None;
            }
        }
        // A vector, possibly with leading axes of extent 1, that is constant.
        let aligned = graph.ty(weight).shape.iter().rev().skip(1).all(|&n| n == 1)
            && graph.ty(weight).shape.last() == Some(&width)
            && graph.ty(weight).shape.len() <= shape.len()
            && graph.constant(weight).is_some();
        let epsilon = found.scalar("epsilon").or(found.scalar("root_epsilon").map(|e| e * e))?;
        let own = graph.argument(root, "epsilon").map_or(Some(vec![1e-12]), |e| graph.constant(e))?;
        let epsilon = epsilon + own.first()?;
        aligned.then(|| {
            vec![
                (X, Argument::Value(x)),
                (WEIGHT, Argument::Value(weight)),
                (EPSILON, Argument::Const(Const::from(epsilon))),
            ]
        })
    }
}

impl Op for RmsNorm {
    fn name(&self) -> &'static str {
        "rms_norm"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::required("weight"), Param::required("epsilon")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let width = x.shape(WEIGHT).iter().product::<usize>();
        if width == 0 || x.shape(X).last() != Some(&width) {
            return Err(x.bad(WEIGHT, "as many weights as the last axis has elements", x.ty(WEIGHT)));
        }
        Ok(smallvec![x.ty(X)])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let (weight, epsilon) = (x.f32s(WEIGHT)?, x.f32(EPSILON)?);
        let width = weight.len();
        for (row, out) in x.f32s(X)?.chunks_exact(width).zip(out[0].f32s()?.chunks_exact_mut(width)) {
            let mean = row.iter().map(|v| v * v).sum::<f32>() / width as f32;
            let r = 1.0 / (mean + epsilon).sqrt();
            out.iter_mut().zip(row).zip(weight).for_each(|((o, v), w)| *o = v * r * w);
        }
        Ok(())
    }

    fn lower(&self, _x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        Some(Box::new(Lowered(Isa::detect())))
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            Case::new("rows of two")
                .input("x", Tensor::floats(DType::F16, &[2, 2], &[3.0, 4.0, 0.0, 2.0]))
                .constant("weight", Const::floats(DType::F16, &[2], &[1.0, 2.0]))
                .constant("epsilon", 12.5f32)
                .expect(Tensor::floats(DType::F16, &[2, 2], &[0.6, 1.6, 0.0, 4.0 / 14.5f32.sqrt()])),
        ]
    }
}

#[derive(Debug)]
struct Lowered(Isa);

impl Kernel for Lowered {
    fn run(&self, x: &dyn Operands, out: &mut [Out<'_>], cx: &mut Context<'_>) -> Result<(), OpError> {
        let (all, weight, epsilon) = (x.f32s(X)?, x.f32s(WEIGHT)?, x.f32(EPSILON)?);
        let width = weight.len();
        let piece = (PIECE / width).max(1) * width;
        cx.workers.for_chunks(out[0].f32s()?, piece, &|i, out| {
            let rows = all[i * piece..].chunks_exact(width);
            rows.zip(out.chunks_exact_mut(width)).for_each(|(x, out)| rms_norm(self.0, x, weight, epsilon, out));
        });
        Ok(())
    }
}
