//! `l2_norm`: `x / √(sum of squares + epsilon)`, with the sum over the last three axes; `epsilon` is 1e-6 if it is left
//! out.

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::examples::{shaped, unary};
use crate::ops::support::{elementwise, lanes};
use crate::types::Opset;

pub(super) struct L2Norm;

impl Op for L2Norm {
    fn name(&self) -> &'static str {
        "l2_norm"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::optional("epsilon")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        if x.shape(0).len() < 3 {
            return Err(x.bad(0, "a tensor of rank 3 or more", x.shape(0)));
        }
        elementwise::infer_with_numbers(x, 2)
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let (shape, data) = (x.shape(0), x.f32s(0)?);
        let epsilon = x.f32_or(1, 1e-6)?;
        let out = out[0].f32s()?;
        let last_three: lanes::Axes = (0..shape.len()).map(|axis| axis + 3 >= shape.len()).collect();
        lanes::Lanes::new(shape, &last_three).for_each(|_, lane| {
            let scale = 1.0 / (lane.sum(data, |v| v * v) + epsilon).sqrt();
            lane.for_each(|_, at| out[at] = data[at] * scale);
        });
        Ok(())
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            unary("all of rank 3", shaped(&[1, 2, 1], &[3.0, 4.0]), shaped(&[1, 2, 1], &[0.6, 0.8])),
            unary(
                "each batch for itself",
                shaped(&[2, 1, 1, 2], &[3.0, 4.0, 0.0, 1.0]),
                shaped(&[2, 1, 1, 2], &[0.3, 0.4, 0.0, 0.114_707_87]),
            )
            .constant("epsilon", 75f32),
        ]
    }
}
