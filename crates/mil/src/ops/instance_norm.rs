//! `instance_norm`: `(x - mean) / √(variance + epsilon) · gamma + beta`, with mean and (population) variance over the
//! space of each batch and channel (axis 1), and one number of `gamma` and `beta` for each channel. Without these
//! nothing is scaled or added; `epsilon` is 1e-5 if it is left out.

use anemone_kernels::Isa;
use anemone_kernels::elementwise::affine_in_place;
use anemone_kernels::reduce::{sum, sum_squares};

use crate::case::Case;
use crate::lower::{Context, Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{floats, shaped, unary};
use crate::ops::support::spread::PIECE;
use crate::ops::support::{channels, elementwise, lanes};
use crate::types::Opset;

pub(super) struct InstanceNorm;

const GAMMA: usize = 1;
const BETA: usize = 2;
const EPSILON: usize = 3;

impl Op for InstanceNorm {
    fn name(&self) -> &'static str {
        "instance_norm"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::optional("gamma"), Param::optional("beta"), Param::optional("epsilon")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let n = channels::count(x)?;
        (GAMMA..EPSILON).try_for_each(|param| channels::expect(x, param, n))?;
        if x.has(EPSILON) {
            elementwise::expect_number(x, EPSILON)?;
        }
        elementwise::infer_float_unary(x)
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let (shape, data) = (x.shape(0), x.f32s(0)?);
        let (gamma, beta) = (channels::given(x, GAMMA)?, channels::given(x, BETA)?);
        let epsilon = x.f32_or(EPSILON, 1e-5)?;
        let out = out[0].f32s()?;
        let space: lanes::Axes = (0..shape.len()).map(|axis| axis > channels::CHANNEL).collect();
        lanes::Lanes::new(shape, &space).for_each(|i, lane| {
            let (c, n) = (i % shape[channels::CHANNEL], lane.len() as f32);
            let mean = lane.sum(data, |v| v) / n;
            let variance = lane.sum(data, |v| (v - mean) * (v - mean)) / n;
            let scale = gamma.map_or(1.0, |g| g[c]) / (variance + epsilon).sqrt();
            let offset = beta.map_or(0.0, |b| b[c]);
            lane.for_each(|_, at| out[at] = (data[at] - mean) * scale + offset);
        });
        Ok(())
    }

    fn lower(&self, x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        elementwise::expect_float(x, 0).is_ok().then(|| Box::new(Lowered { isa: Isa::detect() }) as Box<dyn Kernel>)
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            unary(
                "scaled and moved",
                shaped(&[1, 2, 2, 2], &[1.0, 2.0, 3.0, 4.0, -1.0, 0.5, 7.0, 2.0]),
                shaped(
                    &[1, 2, 2, 2],
                    &[
                        -2.683_271,
                        -0.894_423_6,
                        0.894_423_6,
                        2.683_271,
                        1.538_963_9,
                        1.040_261_3,
                        -1.120_783_8,
                        0.541_558_56,
                    ],
                ),
            )
            .input("gamma", floats(&[2.0, -1.0]))
            .input("beta", floats(&[0.0, 0.5])),
            unary(
                "each batch for itself",
                shaped(&[2, 1, 2], &[1.0, 3.0, 5.0, 5.0]),
                shaped(&[2, 1, 2], &[-1.0, 1.0, 0.0, 0.0]),
            )
            .constant("epsilon", 1e-12f32),
        ]
    }
}

#[derive(Debug)]
struct Lowered {
    isa: Isa,
}

impl Kernel for Lowered {
    fn run(&self, x: &dyn Operands, out: &mut [Out<'_>], cx: &mut Context<'_>) -> Result<(), OpError> {
        let (shape, data) = (x.shape(0), x.f32s(0)?);
        let (gamma, beta) = (channels::given(x, GAMMA)?, channels::given(x, BETA)?);
        let epsilon = x.f32_or(EPSILON, 1e-5)?;
        let plane = shape[channels::CHANNEL + 1..].iter().product::<usize>().max(1);
        let together = (PIECE / plane).max(1);
        cx.workers.for_chunks(out[0].f32s()?, together * plane, &|piece, out| {
            let planes = out.chunks_exact_mut(plane).zip(data[piece * together * plane..].chunks_exact(plane));
            for (i, (out, data)) in planes.enumerate() {
                let c = (piece * together + i) % shape[channels::CHANNEL];
                let mean = sum(self.isa, data) / plane as f32;
                out.iter_mut().zip(data).for_each(|(r, &v)| *r = v - mean);
                let variance = sum_squares(self.isa, out) / plane as f32;
                let scale = gamma.map_or(1.0, |g| g[c]) / (variance + epsilon).sqrt();
                affine_in_place(self.isa, out, scale, beta.map_or(0.0, |b| b[c]));
            }
        });
        Ok(())
    }
}
