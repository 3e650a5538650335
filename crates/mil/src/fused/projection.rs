//! Projection: `x · weightᵀ + bias + added`, the last of the result's shape: `linear` and the addition to the residual.

use smallvec::smallvec;

use super::pattern::{Bindings, Look, Pattern};
use super::{Argument, Fused};
use crate::case::Case;
use crate::lower::{Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::products::{Lowered, Roles};
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

/// Projection as a fused operation.
#[derive(Debug)]
pub struct Projection;

const X: usize = 0;
const WEIGHT: usize = 1;
const ADDED: usize = 2;
const BIAS: usize = 3;

impl Fused for Projection {
    fn op(&self) -> &'static dyn Op {
        &Projection
    }

    fn spellings(&self) -> Vec<Pattern> {
        use Pattern::Any;
        let linear = Pattern::op("linear", [("x", Any("x")), ("weight", Any("weight"))]).named("product");
        vec![Pattern::Either("add", Box::new(linear), Box::new(Any("added")))]
    }

    fn arguments(&self, found: &Bindings, graph: &dyn Look) -> Option<Vec<(usize, Argument)>> {
        let [x, weight, added, product] = ["x", "weight", "added", "product"].map(|n| found.value(n));
        let (x, weight, added, product) = (x?, weight?, added?, product?);
        let fits = graph.is_constant(weight) && graph.used_once(product) && graph.ty(product) == graph.ty(added);
        let mut args =
            vec![(X, Argument::Value(x)), (WEIGHT, Argument::Value(weight)), (ADDED, Argument::Value(added))];
        args.extend(graph.argument(product, "bias").map(|bias| (BIAS, Argument::Value(bias))));
        fits.then_some(args)
    }
}

impl Op for Projection {
    fn name(&self) -> &'static str {
        "projection"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::required("weight"), Param::required("added"), Param::optional("bias")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let (mut ty, weight) = (x.ty(X), x.shape(WEIGHT));
        match (weight, ty.shape.last_mut()) {
            (&[n, k], Some(last)) if *last == k => *last = n,
            _ => return Err(x.bad(WEIGHT, "a matrix (n, k) for rows of k", weight)),
        }
        if x.shape(ADDED) != ty.shape.as_slice() {
            return Err(x.bad(ADDED, format!("{ty}"), x.ty(ADDED)));
        }
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let (rows, weight, added) = (x.f32s(X)?, x.f32s(WEIGHT)?, x.f32s(ADDED)?);
        let &[n, k] = x.shape(WEIGHT) else { return Err(x.bad(WEIGHT, "a matrix", x.shape(WEIGHT))) };
        let bias = if x.has(BIAS) { Some(x.f32s(BIAS)?) } else { None };
        for (j, (y, added)) in out[0].f32s()?.iter_mut().zip(added).enumerate() {
            let (row, w) = (&rows[j / n * k..][..k], &weight[j % n * k..][..k]);
            let dot = row.iter().zip(w).map(|(a, b)| a * b).sum::<f32>();
            *y = dot + bias.map_or(0.0, |b| b[j % n]) + added;
        }
        Ok(())
    }

    fn lower(&self, x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        let roles = Roles { x: X, weights: WEIGHT, biases: Some(BIAS), added: Some(ADDED) };
        Some(Box::new(Lowered::new(roles, x)?))
    }

    fn cases(&self) -> Vec<Case> {
        let t = |shape: &[usize], v: &[f32]| Tensor::floats(DType::F32, shape, v);
        vec![
            Case::new("with bias")
                .input("x", t(&[2, 2], &[1.0, 2.0, 3.0, 4.0]))
                .input("weight", t(&[1, 2], &[1.0, -1.0]))
                .input("added", t(&[2, 1], &[10.0, 20.0]))
                .input("bias", t(&[1], &[0.5]))
                .expect(t(&[2, 1], &[9.5, 19.5])),
        ]
    }
}
