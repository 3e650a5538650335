//! `range_1d`: `start`, `start + step`, … as long as `end` is not reached.

use smallvec::smallvec;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::dims;
use crate::tensor::{DataMut, Tensor};
use crate::types::{Class, DType, Opset, StaticType};

pub(super) struct Range1d;

const END: usize = 0;
const START: usize = 1;
const STEP: usize = 2;

/// The number of steps up to the end, not a number or infinite if the step is 0. Of floats in single precision, as the
/// shapes that packages declare were computed.
fn steps(x: &dyn Operands) -> Result<f64, OpError> {
    if x.dtype(START).class() == Class::Int {
        return Ok(((f64::from(x.i32(END)?) - f64::from(x.i32(START)?)) / f64::from(x.i32(STEP)?)).ceil());
    }
    Ok(f64::from(((x.f32(END)? - x.f32(START)?) / x.f32(STEP)?).ceil()))
}

impl Op for Range1d {
    fn name(&self) -> &'static str {
        "range_1d"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("end"), Param::required("start"), Param::required("step")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let dtype = dims::numbers(x, START)?.dtype;
        for param in [END, STEP] {
            if x.dtype(param) != dtype {
                return Err(x.bad(param, format!("the type of start, {dtype}"), x.dtype(param)));
            }
        }
        let count = steps(x)?;
        if count.is_nan() || count > f64::from(u32::MAX) {
            return Err(x.bad(STEP, "a step that reaches the end within 2^32 elements", x.data(STEP)?));
        }
        Ok(smallvec![StaticType::new(dtype, &[count.max(0.0) as usize])])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        match &mut out[0].data {
            DataMut::F32(r) => {
                let (start, step) = (x.f32(START)?, x.f32(STEP)?);
                r.iter_mut().enumerate().for_each(|(i, r)| *r = start + i as f32 * step);
            }
            DataMut::I32(r) => {
                let (mut next, step) = (x.i32(START)?, x.i32(STEP)?);
                for r in r.iter_mut() {
                    *r = next;
                    next = next.wrapping_add(step);
                }
            }
            DataMut::Bool(_) => return Err(x.bad(START, "numbers", x.dtype(START))),
        }
        Ok(())
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            Case::new("integers, the end known at run time")
                .input("end", Tensor::ints(DType::I32, &[], &[7]))
                .constant("start", 3)
                .constant("step", 1)
                .expect(Tensor::ints(DType::I32, &[4], &[3, 4, 5, 6])),
            Case::new("a step that passes the end")
                .constant("end", 8)
                .constant("start", 1)
                .constant("step", 3)
                .expect(Tensor::ints(DType::I32, &[3], &[1, 4, 7])),
            Case::new("downwards").constant("end", -1).constant("start", 2).constant("step", -1).expect(Tensor::ints(
                DType::I32,
                &[3],
                &[2, 1, 0],
            )),
            Case::new("floats")
                .constant("end", 1.0)
                .constant("start", 0.0)
                .constant("step", 0.25)
                .expect(Tensor::floats(DType::F32, &[4], &[0.0, 0.25, 0.5, 0.75])),
            Case::new("floats whose quotient is not exact")
                .constant("end", 0.3)
                .constant("start", 0.0)
                .constant("step", 0.1)
                .expect(Tensor::floats(DType::F32, &[3], &[0.0, 0.1, 0.2])),
            Case::new("nothing").constant("end", 2).constant("start", 2).constant("step", 1).expect(Tensor::ints(
                DType::I32,
                &[0],
                &[],
            )),
        ]
    }
}
