//! `identity`: `x` itself.

use smallvec::smallvec;

use crate::case::Case;
use crate::layout::Layout;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::dims;
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

pub(super) struct Identity;

impl Op for Identity {
    fn name(&self) -> &'static str {
        "identity"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        Ok(smallvec![dims::numbers(x, 0)?])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        dims::copy(x, 0, &mut out[0])
    }

    fn view(&self, x: &dyn Operands, layout: &Layout) -> Option<Layout> {
        layout.reshaped(&self.infer(x).ok()?[0].shape)
    }

    fn cases(&self) -> Vec<Case> {
        let x = Tensor::floats(DType::F16, &[2], &[1.0, -2.0]);
        let b = Tensor::bools(&[], &[true]);
        vec![
            Case::new("floats").input("x", x.clone()).expect(x),
            Case::new("a truth value").input("x", b.clone()).expect(b),
        ]
    }
}
