//! `layer_norm`: `(x - mean) / √(variance + epsilon) · gamma + beta`, with mean and (population) variance along `axes`
//! (all if left out). `gamma` and `beta` have the extents of those axes, in their order in `x`; without them nothing is
//! scaled or added. `epsilon` is 1e-5 if it is left out.

use anemone_kernels::Isa;
use anemone_kernels::norm::layer_norm;

use crate::case::Case;
use crate::lower::{Context, Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{floats, shaped, unary};
use crate::ops::support::spread::PIECE;
use crate::ops::support::{channels, elementwise, lanes};
use crate::tensor::Tensor;
use crate::types::{DType, Opset, Shape};

pub(super) struct LayerNorm;

const AXES: usize = 1;
const GAMMA: usize = 2;
const BETA: usize = 3;
const EPSILON: usize = 4;

impl Op for LayerNorm {
    fn name(&self) -> &'static str {
        "layer_norm"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::required("x"),
                Param::optional("axes"),
                Param::optional("gamma"),
                Param::optional("beta"),
                Param::optional("epsilon"),
            ]
        }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let shape = x.shape(0);
        let axes = lanes::axes(x, AXES, shape.len())?;
        let normalized: Shape = shape.iter().zip(&axes).filter(|&(_, &along)| along).map(|(&n, _)| n).collect();
        for param in [GAMMA, BETA].into_iter().filter(|&p| x.has(p)) {
            elementwise::expect_float(x, param)?;
            if x.shape(param) != &normalized[..] {
                return Err(x.bad(param, format!("shape {normalized:?}"), x.shape(param)));
            }
        }
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
        lanes::Lanes::new(shape, &lanes::axes(x, AXES, shape.len())?).for_each(|_, lane| {
            let n = lane.len() as f32;
            let mean = lane.sum(data, |v| v) / n;
            let variance = lane.sum(data, |v| (v - mean) * (v - mean)) / n;
            let scale = 1.0 / (variance + epsilon).sqrt();
            lane.for_each(|i, at| {
                out[at] = (data[at] - mean) * scale * gamma.map_or(1.0, |g| g[i]) + beta.map_or(0.0, |b| b[i]);
            });
        });
        Ok(())
    }

    fn lower(&self, x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        let width = width(x).ok()?.filter(|&n| n > 0)?;
        Some(Box::new(Lowered { isa: Isa::detect(), ones: vec![1.0; width], zeros: vec![0.0; width] }))
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            unary(
                "all axes",
                shaped(&[2, 2, 2], &[1.0, 2.0, 3.0, 4.0, -1.0, 0.5, 7.0, 2.0]),
                shaped(
                    &[2, 2, 2],
                    &[
                        -0.576_478_9,
                        -0.137_256_88,
                        0.301_965_15,
                        0.741_187_16,
                        -1.454_922_9,
                        -0.796_089_9,
                        2.058_853_1,
                        -0.137_256_88,
                    ],
                ),
            ),
            unary(
                "the last axis, scaled and moved",
                shaped(&[2, 2, 2], &[1.0, 2.0, 3.0, 4.0, -1.0, 0.5, 7.0, 2.0]),
                shaped(
                    &[2, 2, 2],
                    &[-1.499_96, -0.999_98, -1.499_96, -0.999_98, -1.499_982_2, -0.999_991_1, 2.499_998_3, 0.999_999_2],
                ),
            )
            .constant("axes", [-1])
            .input("gamma", floats(&[2.0, -1.0]))
            .input("beta", floats(&[0.5, 0.0])),
            unary(
                "axes that are no neighbours",
                shaped(&[2, 2, 2], &[1.0, 2.0, 3.0, 4.0, -1.0, 0.5, 7.0, 2.0]),
                shaped(
                    &[2, 2, 2],
                    &[0.332_513_33, 2.438_431, -0.527_046_26, 0.0, -4.322_673_3, -0.443_351_1, 4.743_416_3, -4.216_37],
                ),
            )
            .constant("axes", [2, 0])
            .input("gamma", shaped(&[2, 2], &[1.0, 2.0, 3.0, 4.0]))
            .constant("epsilon", 0.1f32),
            unary(
                "parameters of another width",
                Tensor::floats(DType::F16, &[2], &[-1.0, 1.0]),
                Tensor::floats(DType::F16, &[2], &[0.000_004_999_962_6, 1.999_995]),
            )
            .constant("axes", [0])
            .input("beta", floats(&[1.0, 1.0])),
        ]
    }
}

/// How many elements a norm is of, if they lie together: those of the last axes.
fn width(x: &dyn Operands) -> Result<Option<usize>, OpError> {
    let shape = x.shape(0);
    let axes = lanes::axes(x, AXES, shape.len())?;
    let first = axes.iter().position(|&along| along).unwrap_or(shape.len());
    Ok(axes[first..].iter().all(|&along| along).then(|| shape[first..].iter().product()))
}

/// The norm of rows.
#[derive(Debug)]
struct Lowered {
    isa: Isa,
    /// In place of `gamma`.
    ones: Vec<f32>,
    /// In place of `beta`.
    zeros: Vec<f32>,
}

impl Kernel for Lowered {
    fn run(&self, x: &dyn Operands, out: &mut [Out<'_>], cx: &mut Context<'_>) -> Result<(), OpError> {
        let Some(width) = width(x)?.filter(|&n| n == self.ones.len()) else { return LayerNorm.eval(x, out) };
        let data = x.f32s(0)?;
        let gamma = channels::given(x, GAMMA)?.unwrap_or(&self.ones);
        let beta = channels::given(x, BETA)?.unwrap_or(&self.zeros);
        let epsilon = x.f32_or(EPSILON, 1e-5)?;
        let together = (PIECE / width).max(1) * width;
        cx.workers.for_chunks(out[0].f32s()?, together, &|piece, out| {
            let rows = &data[piece * together..][..out.len()];
            layer_norm(self.isa, rows, gamma, beta, epsilon, out);
        });
        Ok(())
    }
}
