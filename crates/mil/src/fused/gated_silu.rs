//! Gated SiLU: `silu(gate) · up`, the middle of a gated feed-forward layer.

use anemone_kernels::Isa;
use anemone_kernels::elementwise::{Binary, binary};
use smallvec::smallvec;

use super::pattern::{Bindings, Look, Pattern};
use super::{Argument, Fused};
use crate::case::Case;
use crate::lower::{Context, Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::spread::PIECE;
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

/// Gated SiLU as a fused operation.
#[derive(Debug)]
pub struct GatedSilu;

const GATE: usize = 0;
const UP: usize = 1;

/// How `silu(gate) · up` is written.
pub(super) fn gated(gate: &Pattern, up: &Pattern) -> Vec<Pattern> {
    use Pattern::Either;
    let silu = Pattern::op("silu", [("x", gate.clone())]);
    let sigmoid = Pattern::op("sigmoid", [("x", gate.clone())]);
    let gate_sigmoid = Either("mul", Box::new(gate.clone()), Box::new(sigmoid));
    [silu, gate_sigmoid].map(|s| Either("mul", Box::new(s), Box::new(up.clone()))).into()
}

impl Fused for GatedSilu {
    fn op(&self) -> &'static dyn Op {
        &GatedSilu
    }

    fn spellings(&self) -> Vec<Pattern> {
        gated(&Pattern::Any("gate"), &Pattern::Any("up"))
    }

    fn arguments(&self, found: &Bindings, graph: &dyn Look) -> Option<Vec<(usize, Argument)>> {
        let (gate, up) = (found.value("gate")?, found.value("up")?);
        (graph.ty(gate) == graph.ty(up)).then(|| vec![(GATE, Argument::Value(gate)), (UP, Argument::Value(up))])
    }
}

impl Op for GatedSilu {
    fn name(&self) -> &'static str {
        "gated_silu"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("gate"), Param::required("up")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        if x.ty(GATE) != x.ty(UP) {
            return Err(x.bad(UP, format!("{}", x.ty(GATE)), x.ty(UP)));
        }
        Ok(smallvec![x.ty(GATE)])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let (gate, up) = (x.f32s(GATE)?, x.f32s(UP)?);
        for ((o, g), u) in out[0].f32s()?.iter_mut().zip(gate).zip(up) {
            *o = g / (1.0 + (-g).exp()) * u;
        }
        Ok(())
    }

    fn lower(&self, _x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        Some(Box::new(Lowered(Isa::detect())))
    }

    fn cases(&self) -> Vec<Case> {
        let sigmoid = |v: f32| 1.0 / (1.0 + (-v).exp());
        vec![
            Case::new("elementwise")
                .input("gate", Tensor::floats(DType::F32, &[3], &[0.0, 2.0, -30.0]))
                .input("up", Tensor::floats(DType::F32, &[3], &[5.0, 3.0, 1.0]))
                .expect(Tensor::floats(DType::F32, &[3], &[0.0, 6.0 * sigmoid(2.0), -30.0 * sigmoid(-30.0)])),
        ]
    }
}

#[derive(Debug)]
struct Lowered(Isa);

impl Kernel for Lowered {
    fn run(&self, x: &dyn Operands, out: &mut [Out<'_>], cx: &mut Context<'_>) -> Result<(), OpError> {
        let (gate, up) = (x.f32s(GATE)?, x.f32s(UP)?);
        cx.workers.for_chunks(out[0].f32s()?, PIECE, &|i, piece| {
            let range = i * PIECE..i * PIECE + piece.len();
            binary(self.0, Binary::SiluMul, &gate[range.clone()], &up[range], piece);
        });
        Ok(())
    }
}
