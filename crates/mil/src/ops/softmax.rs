//! `softmax`: e to the power of the elements, divided by its sum along `axis` (the last if left out).

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{floats, shaped, unary};
use crate::ops::support::{elementwise, lanes};
use crate::types::Opset;

pub(super) struct Softmax;

impl Op for Softmax {
    fn name(&self) -> &'static str {
        "softmax"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::optional("axis")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        lanes::axis_or_last(x, 1, x.shape(0).len())?;
        elementwise::infer_float_unary(x)
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let (shape, data) = (x.shape(0), x.f32s(0)?);
        let out = out[0].f32s()?;
        lanes::Lanes::new(shape, &lanes::axis_or_last(x, 1, shape.len())?).for_each(|_, lane| {
            let most = lane.fold(data, f32::NEG_INFINITY, f32::max);
            lane.for_each(|_, at| out[at] = (data[at] - most).exp());
            let sum = lane.sum(out, |v| v);
            lane.for_each(|_, at| out[at] /= sum);
        });
        Ok(())
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            unary(
                "the last axis if nothing is said",
                shaped(&[2, 3], &[0.0, 1.0, 2.0, 1000.0, 1000.0, -1000.0]),
                shaped(&[2, 3], &[0.090_030_57, 0.244_728_48, 0.665_240_94, 0.5, 0.5, 0.0]),
            ),
            unary(
                "another axis",
                shaped(&[2, 2], &[0.0, 1.0, 2.0, -1.0]),
                shaped(&[2, 2], &[0.119_202_92, 0.880_797_1, 0.880_797_1, 0.119_202_92]),
            )
            .constant("axis", 0),
            unary("minus infinity counts nothing", floats(&[f32::NEG_INFINITY, 3.0]), floats(&[0.0, 1.0])),
            unary("a row of nothing else has no softmax", floats(&[f32::NEG_INFINITY; 2]), floats(&[f32::NAN; 2])),
        ]
    }
}
