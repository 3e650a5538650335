//! Gated projection: `silu(x · gateᵀ) · (x · upᵀ)`, the first half of a gated feed-forward layer: one pass over both
//! weights, and neither product goes to memory by itself.

use std::sync::Arc;

use smallvec::smallvec;

use super::gated_silu::gated;
use super::pattern::{Bindings, Look, Pattern};
use super::{Argument, Fused};
use crate::case::Case;
use crate::lower::{Context, Kernel, Lasting, LowerOperands, RESULTS};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::matrix::Matrix;
use crate::ops::support::products::{self, integers, packed, rows_scratch};
use crate::ops::support::row::Row;
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

/// Gated projection as a fused operation.
#[derive(Debug)]
pub struct GatedProjection;

const X: usize = 0;
const GATE: usize = 1;
const UP: usize = 2;
const GATE_BIAS: usize = 3;
const UP_BIAS: usize = 4;

impl Fused for GatedProjection {
    fn op(&self) -> &'static dyn Op {
        &GatedProjection
    }

    fn spellings(&self) -> Vec<Pattern> {
        use Pattern::Any;
        let linear = |name, weight| Pattern::op("linear", [("x", Any("x")), ("weight", Any(weight))]).named(name);
        gated(&linear("gate", "gate_weight"), &linear("up", "up_weight"))
    }

    fn arguments(&self, found: &Bindings, graph: &dyn Look) -> Option<Vec<(usize, Argument)>> {
        let x = found.value("x")?;
        let sides = [("gate", "gate_weight", GATE, GATE_BIAS), ("up", "up_weight", UP, UP_BIAS)];
        let mut args = vec![(X, Argument::Value(x))];
        let mut shapes = Vec::new();
        for (product, weight, param, bias_param) in sides {
            let (product, weight) = (found.value(product)?, found.value(weight)?);
            // Computed for this alone, or it would be computed twice.
            if !graph.is_constant(weight) || !graph.used_once(product) && product != found.value("gate")? {
                return None;
            }
            shapes.push(&graph.ty(weight).shape);
            args.push((param, Argument::Value(weight)));
            if let Some(bias) = graph.argument(product, "bias") {
                args.push((bias_param, Argument::Value(bias)));
            }
        }
        (shapes[0] == shapes[1]).then_some(args)
    }
}

impl Op for GatedProjection {
    fn name(&self) -> &'static str {
        "gated_projection"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::required("x"),
                Param::required("gate"),
                Param::required("up"),
                Param::optional("gate_bias"),
                Param::optional("up_bias"),
            ]
        }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let (mut ty, gate, up) = (x.ty(X), x.shape(GATE), x.shape(UP));
        match (gate, ty.shape.last_mut()) {
            (&[n, k], Some(last)) if *last == k && gate == up => *last = n,
            _ => return Err(x.bad(UP, format!("matrices (n, k) for rows of k, {gate:?}"), up)),
        }
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let (rows, &[n, k]) = (x.f32s(X)?, x.shape(GATE)) else { return Err(x.bad(GATE, "a matrix", x.shape(GATE))) };
        let side = |weight: usize, bias: usize| -> Result<Vec<f32>, OpError> {
            let weight = x.f32s(weight)?;
            let bias = if x.has(bias) { Some(x.f32s(bias)?) } else { None };
            let dot = |row: &[f32], j: usize| row.iter().zip(&weight[j * k..]).map(|(a, b)| a * b).sum::<f32>();
            let all = rows.chunks_exact(k).flat_map(|row| (0..n).map(move |j| (row, j)));
            Ok(all.map(|(row, j)| dot(row, j) + bias.map_or(0.0, |b| b[j])).collect())
        };
        let (gate, up) = (side(GATE, GATE_BIAS)?, side(UP, UP_BIAS)?);
        for ((y, g), u) in out[0].f32s()?.iter_mut().zip(gate).zip(up) {
            *y = g / (1.0 + (-g).exp()) * u;
        }
        Ok(())
    }

    fn lower(&self, x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        let (gate, up, exact) = (packed(x, GATE, 0)?, packed(x, UP, 0)?, x.exact());
        let any = integers(&gate, exact) || integers(&up, exact);
        let scratch = if any { rows_scratch(x, X) } else { 0 };
        let matrices = [gate, up];
        Some(Box::new(Lowered { row: Row::gated(&matrices, exact), matrices, exact, scratch }))
    }

    fn cases(&self) -> Vec<Case> {
        let t = |shape: &[usize], v: &[f32]| Tensor::floats(DType::F32, shape, v);
        let silu = |v: f32| v / (1.0 + (-v).exp());
        vec![
            Case::new("two rows, a bias of the gate")
                .input("x", t(&[2, 2], &[1.0, 2.0, 3.0, 4.0]))
                .input("gate", t(&[2, 2], &[1.0, 0.0, 0.0, 1.0]))
                .input("up", t(&[2, 2], &[1.0, 1.0, 0.0, -1.0]))
                .input("gate_bias", t(&[2], &[0.0, 1.0]))
                .expect(t(&[2, 2], &[silu(1.0) * 3.0, silu(3.0) * -2.0, silu(3.0) * 7.0, silu(5.0) * -4.0])),
        ]
    }
}

#[derive(Debug)]
struct Lowered {
    matrices: [Arc<Matrix>; 2],
    exact: bool,
    scratch: usize,
    /// The same for one row, without biases.
    row: Option<Arc<dyn Lasting>>,
}

impl Kernel for Lowered {
    fn run(&self, x: &dyn Operands, out: &mut [Out<'_>], cx: &mut Context<'_>) -> Result<(), OpError> {
        let bias = |param: usize| if x.has(param) { x.f32s(param).map(Some) } else { Ok(None) };
        let [gate, up] = &self.matrices;
        let biases = [bias(GATE_BIAS)?, bias(UP_BIAS)?];
        let (x, out) = (x.f32s(X)?, out[0].f32s()?);
        if let (Some(row), [None, None]) = (&self.row, biases)
            && out.len() == gate.view().rows()
            && cx.workers.for_lasting(row, x, &mut |i, results| {
                let out = out.chunks_mut(RESULTS).nth(i).expect("as many pieces as there are results");
                out.copy_from_slice(&results[..out.len()]);
            })
        {
            return Ok(());
        }
        products::gated(x, [gate, up], biases, self.exact, out, cx);
        Ok(())
    }

    fn scratch(&self) -> usize {
        self.scratch
    }

    fn lasting(&self) -> Option<&Arc<dyn Lasting>> {
        self.row.as_ref()
    }

    fn holds(&self, param: usize) -> bool {
        param == GATE || param == UP
    }
}
