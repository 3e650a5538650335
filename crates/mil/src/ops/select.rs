//! `select`: elements of `a` where `cond` is true, of `b` elsewhere; all three broadcast.

use smallvec::smallvec;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::broadcast;
use crate::ops::support::examples::{bools, floats, ints, shaped};
use crate::tensor::{Data, DataMut, Tensor};
use crate::types::{DType, Opset, StaticType};

pub(super) struct Select;

fn choose<T: Copy>((out, shape): (&mut [T], &[usize]), cond: &[bool], a: &[T], b: &[T], shapes: [&[usize]; 3]) {
    broadcast::runs(shape, shapes, |run| {
        let [mut c, mut i, mut j] = run.at;
        for r in &mut out[run.out..run.out + run.len] {
            *r = if cond[c] { a[i] } else { b[j] };
            c += run.step[0];
            i += run.step[1];
            j += run.step[2];
        }
    });
}

impl Op for Select {
    fn name(&self) -> &'static str {
        "select"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("cond"), Param::required("a"), Param::required("b")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        if x.dtype(0) != DType::Bool {
            return Err(x.bad(0, "a tensor of truth values", x.dtype(0)));
        }
        let ((dtype, a), (other, b)) = (x.ty_at(1, 0), x.ty_at(2, 0));
        if dtype != other || dtype == DType::String {
            return Err(OpError::mismatch("operands of one element type", format!("{dtype} and {other}")));
        }
        Ok(smallvec![StaticType { dtype, shape: broadcast::broadcast(x.shape(0), &broadcast::broadcast(a, b)?)? }])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let (cond, shape) = (x.bools(0)?, out[0].shape);
        let shapes = [x.shape(0), x.shape(1), x.shape(2)];
        match (x.data(1)?, x.data(2)?, &mut out[0].data) {
            (Data::F32(a), Data::F32(b), DataMut::F32(r)) => choose((r, shape), cond, a, b, shapes),
            (Data::I32(a), Data::I32(b), DataMut::I32(r)) => choose((r, shape), cond, a, b, shapes),
            (Data::Bool(a), Data::Bool(b), DataMut::Bool(r)) => choose((r, shape), cond, a, b, shapes),
            _ => return Err(x.bad(2, "two operands of one type", x.dtype(2))),
        }
        Ok(())
    }

    fn cases(&self) -> Vec<Case> {
        vec![
            Case::new("all three broadcast")
                .input("cond", Tensor::bools(&[2, 1], &[true, false]))
                .input("a", floats(&[1.0, 2.0]))
                .input("b", shaped(&[], &[-1.0]))
                .expect(shaped(&[2, 2], &[1.0, 2.0, -1.0, -1.0])),
            Case::new("what is not chosen does not matter")
                .input("cond", bools(&[true, false]))
                .input("a", floats(&[1.0, f32::NAN]))
                .input("b", floats(&[f32::INFINITY, 2.0]))
                .expect(floats(&[1.0, 2.0])),
            Case::new("integers")
                .input("cond", bools(&[true, false, true]))
                .input("a", ints(&[1, 2, 3]))
                .input("b", ints(&[-1, -2, -3]))
                .expect(ints(&[1, -2, 3])),
            Case::new("truth values")
                .input("cond", bools(&[true, false]))
                .input("a", bools(&[false, true]))
                .input("b", bools(&[true, false]))
                .expect(bools(&[false, false])),
        ]
    }
}
