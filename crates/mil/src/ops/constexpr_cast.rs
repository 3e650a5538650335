//! `constexpr_cast`: the half float `source_val` as `output_dtype`, which is always `fp32`.

use smallvec::smallvec;

use crate::case::Case;
use crate::constant::Const;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::elementwise;
use crate::ops::support::examples::floats;
use crate::types::{DType, Opset, StaticType};

pub(super) struct ConstexprCast;

impl Op for ConstexprCast {
    fn name(&self) -> &'static str {
        "constexpr_cast"
    }

    fn since(&self) -> Opset {
        Opset::CoreML6
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("source_val"), Param::required("output_dtype")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        elementwise::expect_float(x, 0)?;
        match x.text_or(1, "")? {
            "fp32" => Ok(smallvec![StaticType::new(DType::F32, x.shape(0))]),
            other => Err(x.bad(1, "fp32", other)),
        }
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        out[0].f32s()?.copy_from_slice(x.f32s(0)?);
        Ok(())
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            Case::new("the same numbers")
                .constant("source_val", Const::floats(DType::F16, &[2], &[1.5, -0.25]))
                .constant("output_dtype", "fp32")
                .expect(floats(&[1.5, -0.25])),
        ]
    }
}
