//! `gelu`: the Gaussian error linear unit, elementwise, in one of three forms: `EXACT` (the default) is `x/2 · (1 +
//! erf(x/√2))`, `TANH_APPROXIMATION` is `x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))`, `SIGMOID_APPROXIMATION` is `x ·
//! sigmoid(1.702 x)`.

use anemone_kernels::elementwise::Unary;

use crate::case::Case;
use crate::lower::{Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::erf::erf;
use crate::ops::support::examples::{floats, unary};
use crate::ops::support::{elementwise, spread};
use crate::types::Opset;

pub(super) struct Gelu;

fn exact(v: f32) -> f32 {
    0.5 * v * (1.0 + erf(v * std::f32::consts::FRAC_1_SQRT_2))
}

fn by_tanh(v: f32) -> f32 {
    const SQRT_2_OVER_PI: f32 = 0.797_884_6;
    0.5 * v * (1.0 + (SQRT_2_OVER_PI * (v + 0.044_715 * v * v * v)).tanh())
}

fn by_sigmoid(v: f32) -> f32 {
    v / (1.0 + (-1.702 * v).exp())
}

fn form(x: &dyn Operands) -> Result<fn(f32) -> f32, OpError> {
    match x.text_or(1, "EXACT")? {
        "EXACT" => Ok(exact),
        "TANH_APPROXIMATION" => Ok(by_tanh),
        "SIGMOID_APPROXIMATION" => Ok(by_sigmoid),
        other => Err(x.bad(1, "EXACT, TANH_APPROXIMATION or SIGMOID_APPROXIMATION", other)),
    }
}

impl Op for Gelu {
    fn name(&self) -> &'static str {
        "gelu"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::optional("mode")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        form(x)?;
        elementwise::infer_float_unary(x)
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let form = form(x)?;
        elementwise::eval_float_unary(x, out, form)
    }

    fn lower(&self, x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        match (x as &dyn Operands).text_or(1, "EXACT").ok()? {
            "EXACT" => spread::function(x, Unary::Gelu),
            "TANH_APPROXIMATION" => spread::function(x, Unary::GeluTanh),
            _ => spread::function(x, Unary::GeluSigmoid),
        }
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            unary(
                "exact if nothing is said",
                floats(&[0.0, 1.0, -2.0, 20.0]),
                floats(&[0.0, 0.841_344_7, -0.045_500_264, 20.0]),
            ),
            unary("exact", floats(&[0.5]), floats(&[0.345_731_23])).constant("mode", "EXACT"),
            unary("by tanh", floats(&[0.0, 1.0, -2.0, 0.5]), floats(&[0.0, 0.841_192, -0.045_402_306, 0.345_714]))
                .constant("mode", "TANH_APPROXIMATION"),
            unary(
                "by sigmoid",
                floats(&[0.0, 1.0, -2.0, 0.5]),
                floats(&[0.0, 0.845_795_77, -0.064_341_375, 0.350_388_43]),
            )
            .constant("mode", "SIGMOID_APPROXIMATION"),
        ]
    }
}
