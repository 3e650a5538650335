//! `stack`: tensors of one shape side by side along a new axis.

use smallvec::smallvec;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::dims;
use crate::ops::support::strided::Nest;
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct Stack;

const VALUES: usize = 0;
const AXIS: usize = 1;

impl Op for Stack {
    fn name(&self) -> &'static str {
        "stack"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::variadic("values"), Param::required("axis")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let mut ty = dims::numbers(x, VALUES)?;
        let n = x.count(VALUES);
        for i in 1..n {
            if x.ty_at(VALUES, i) != x.ty_at(VALUES, 0) {
                return Err(x.bad(VALUES, format!("tensors of type {ty}"), dims::numbers_at(x, VALUES, i)?));
            }
        }
        let axis = x.axis(AXIS, ty.shape.len() + 1)?;
        ty.shape.insert(axis, n);
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let out = &mut out[0];
        if out.shape.contains(&0) {
            return Ok(());
        }
        let axis = x.axis(AXIS, out.shape.len())?;
        let (outer, n, inner) = dims::around(out.shape, axis)?;
        for i in 0..n {
            let data = x.data_at(VALUES, i).ok_or(OpError::NeedsValue { param: x.name_of(VALUES) })?;
            let mut nest = Nest::at(0, i * inner);
            nest.push(outer, inner, n * inner);
            nest.push(inner, 1, 1);
            nest.copy(data, &mut out.data)?;
        }
        Ok(())
    }

    fn cases(&self) -> Vec<Case> {
        let a = Tensor::floats(DType::F16, &[2], &[1.0, 2.0]);
        let b = Tensor::floats(DType::F16, &[2], &[3.0, 4.0]);
        let case = |name, axis: i32| {
            Case::new(name).input("values", a.clone()).input("values", b.clone()).constant("axis", axis)
        };
        vec![
            case("in front", 0).expect(Tensor::floats(DType::F16, &[2, 2], &[1.0, 2.0, 3.0, 4.0])),
            case("at the end", -1).expect(Tensor::floats(DType::F16, &[2, 2], &[1.0, 3.0, 2.0, 4.0])),
            Case::new("scalars")
                .constant("values", 1)
                .input("values", Tensor::ints(DType::I32, &[], &[2]))
                .constant("axis", 0)
                .expect(Tensor::ints(DType::I32, &[2], &[1, 2])),
        ]
    }
}
