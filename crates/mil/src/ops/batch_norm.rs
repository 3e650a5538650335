//! `batch_norm`: `(x - mean) / √(variance + epsilon) · gamma + beta`, with one number of each parameter for each
//! channel (axis 1). Without `gamma` and `beta` nothing is scaled or added; `epsilon` is 1e-5 if it is left out.

use crate::case::Case;
use crate::lower::{Context, Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{floats, shaped, unary};
use crate::ops::support::spread::PIECE;
use crate::ops::support::{channels, elementwise};
use crate::types::Opset;

pub(super) struct BatchNorm;

const MEAN: usize = 1;
const VARIANCE: usize = 2;
const GAMMA: usize = 3;
const BETA: usize = 4;
const EPSILON: usize = 5;

impl Op for BatchNorm {
    fn name(&self) -> &'static str {
        "batch_norm"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::required("x"),
                Param::required("mean"),
                Param::required("variance"),
                Param::optional("gamma"),
                Param::optional("beta"),
                Param::optional("epsilon"),
            ]
        }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let n = channels::count(x)?;
        (MEAN..EPSILON).try_for_each(|param| channels::expect(x, param, n))?;
        if x.has(EPSILON) {
            elementwise::expect_number(x, EPSILON)?;
        }
        elementwise::infer_float_unary(x)
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let (data, mean, variance) = (x.f32s(0)?, x.f32s(MEAN)?, x.f32s(VARIANCE)?);
        let (gamma, beta) = (channels::given(x, GAMMA)?, channels::given(x, BETA)?);
        let epsilon = x.f32_or(EPSILON, 1e-5)?;
        let out = out[0].f32s()?;
        channels::for_each(x.shape(0), Some(channels::CHANNEL), |c, range| {
            let scale = gamma.map_or(1.0, |g| g[c]) / (variance[c] + epsilon).sqrt();
            let offset = beta.map_or(0.0, |b| b[c]);
            for (r, &v) in out[range.clone()].iter_mut().zip(&data[range]) {
                *r = (v - mean[c]) * scale + offset;
            }
        });
        Ok(())
    }

    fn lower(&self, x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        elementwise::expect_float(x, 0).is_ok().then(|| Box::new(Lowered) as Box<dyn Kernel>)
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            unary(
                "scaled and moved",
                shaped(&[1, 2, 2, 2], &[1.0, 2.0, 3.0, 4.0, -1.0, 0.5, 7.0, 2.0]),
                shaped(&[1, 2, 2, 2], &[0.0, 0.999_998_75, 1.999_997_5, 2.999_996_2, 6.499_88, 3.499_94, -9.4998, 0.5]),
            )
            .input("mean", floats(&[1.0, 2.0]))
            .input("variance", floats(&[4.0, 0.25]))
            .input("gamma", floats(&[2.0, -1.0]))
            .input("beta", floats(&[0.0, 0.5])),
            unary(
                "nothing left in but the epsilon",
                shaped(&[2, 1, 2], &[1.0, 2.0, 3.0, 4.0]),
                shaped(&[2, 1, 2], &[0.0, 0.5, 1.0, 1.5]),
            )
            .input("mean", floats(&[1.0]))
            .input("variance", floats(&[3.0]))
            .constant("epsilon", 1f32),
        ]
    }
}

/// The same, plane by plane, on all threads.
#[derive(Debug)]
struct Lowered;

impl Kernel for Lowered {
    fn run(&self, x: &dyn Operands, out: &mut [Out<'_>], cx: &mut Context<'_>) -> Result<(), OpError> {
        let (data, mean, variance) = (x.f32s(0)?, x.f32s(MEAN)?, x.f32s(VARIANCE)?);
        let (gamma, beta) = (channels::given(x, GAMMA)?, channels::given(x, BETA)?);
        let epsilon = x.f32_or(EPSILON, 1e-5)?;
        let plane = x.shape(0)[channels::CHANNEL + 1..].iter().product::<usize>().max(1);
        let together = (PIECE / plane).max(1);
        cx.workers.for_chunks(out[0].f32s()?, together * plane, &|piece, out| {
            let planes = out.chunks_exact_mut(plane).zip(data[piece * together * plane..].chunks_exact(plane));
            for (i, (out, data)) in planes.enumerate() {
                let c = (piece * together + i) % mean.len();
                let scale = gamma.map_or(1.0, |g| g[c]) / (variance[c] + epsilon).sqrt();
                let offset = beta.map_or(0.0, |b| b[c]);
                out.iter_mut().zip(data).for_each(|(r, &v)| *r = (v - mean[c]) * scale + offset);
            }
        });
        Ok(())
    }
}
