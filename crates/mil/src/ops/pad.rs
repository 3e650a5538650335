//! `pad`: elements added before and after the last axes of `x`: `pad` holds a pair (before, after) for each of them. They
//! are `constant_val`, the tensor mirrored without its border (`reflect`), or its border (`replicate`).

use smallvec::smallvec;

use crate::case::Case;
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::{dims, filling};
use crate::tensor::{Data, DataMut, Tensor};
use crate::types::{DType, Opset};

pub(super) struct Pad;

const X: usize = 0;
const PAD: usize = 1;
const MODE: usize = 2;
const CONSTANT_VAL: usize = 3;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Constant,
    Reflect,
    Replicate,
}

impl Mode {
    fn new(x: &dyn Operands) -> Result<Self, OpError> {
        match x.text_or(MODE, "constant")? {
            "constant" => Ok(Mode::Constant),
            "reflect" => Ok(Mode::Reflect),
            "replicate" => Ok(Mode::Replicate),
            other => Err(x.bad(MODE, "constant, reflect or replicate", other)),
        }
    }

    /// The element of an axis of `n` that stands at `at` of the padded axis.
    fn source(self, at: usize, before: usize, n: usize) -> Option<usize> {
        match self {
            _ if (before..before + n).contains(&at) => Some(at - before),
            Mode::Constant => None,
            Mode::Replicate => Some(if at < before { 0 } else { n - 1 }),
            Mode::Reflect if at < before => Some(before - at),
            Mode::Reflect => Some(2 * (n - 1) - (at - before)),
        }
    }
}

/// Elements before and after axis `axis`.
fn padding(pad: &[i32], rank: usize, axis: usize) -> [usize; 2] {
    match (2 * axis + pad.len()).checked_sub(2 * rank) {
        Some(i) => [pad[i] as usize, pad[i + 1] as usize],
        None => [0, 0],
    }
}

impl Op for Pad {
    fn name(&self) -> &'static str {
        "pad"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::required("pad"), Param::optional("mode"), Param::optional("constant_val")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let mut ty = dims::numbers(x, X)?;
        let mode = Mode::new(x)?;
        let pad = x.i32s(PAD)?;
        let rank = ty.shape.len();
        if x.shape(PAD).len() != 1 || pad.len() % 2 != 0 || pad.len() > 2 * rank || pad.iter().any(|&p| p < 0) {
            return Err(x.bad(PAD, format!("pairs of numbers of 0 or more, at most {rank}"), pad));
        }
        if mode == Mode::Constant && x.has(CONSTANT_VAL) && x.dtype(CONSTANT_VAL).class() != ty.dtype.class() {
            return Err(x.bad(CONSTANT_VAL, format!("a value of x's type {}", ty.dtype), x.dtype(CONSTANT_VAL)));
        }
        for (axis, n) in ty.shape.iter_mut().enumerate() {
            let [before, after] = padding(pad, rank, axis);
            let most = match mode {
                Mode::Constant => usize::MAX,
                Mode::Reflect => n.saturating_sub(1),
                // Any number of copies of the border, if there is one.
                Mode::Replicate => {
                    if *n == 0 {
                        0
                    } else {
                        usize::MAX
                    }
                }
            };
            if before.max(after) > most {
                return Err(x.bad(PAD, format!("at most {most} on axis {axis} of extent {n}"), [before, after]));
            }
            *n = dims::sum(&[*n, before, after])?;
        }
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        if out[0].shape.contains(&0) {
            return Ok(());
        }
        let mode = Mode::new(x)?;
        if mode == Mode::Constant {
            filling::fill(x, CONSTANT_VAL, &mut out[0])?;
        }
        let frame = Frame { mode, pad: x.i32s(PAD)?, x: x.shape(X), out: out[0].shape };
        match (x.data(X)?, &mut out[0].data) {
            (Data::F32(a), DataMut::F32(r)) => frame.run(0, a, r),
            (Data::I32(a), DataMut::I32(r)) => frame.run(0, a, r),
            (Data::Bool(a), DataMut::Bool(r)) => frame.run(0, a, r),
            _ => return Err(dims::class_mismatch()),
        }
        Ok(())
    }

    fn cases(&self) -> Vec<Case> {
        let x = Tensor::floats(DType::F16, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let case = |name, pad: &[i32], mode: &str| {
            Case::new(name).input("x", x.clone()).constant("pad", pad).constant("mode", mode)
        };
        let f = |shape: &[usize], v: &[f32]| Tensor::floats(DType::F16, shape, v);
        vec![
            case("with a constant, on the last axis", &[1, 2], "constant")
                .constant("constant_val", half::f16::from_f32(9.0))
                .expect(f(&[2, 6], &[9.0, 1.0, 2.0, 3.0, 9.0, 9.0, 9.0, 4.0, 5.0, 6.0, 9.0, 9.0])),
            Case::new("with zeros, as far as is known at run time")
                .input("x", x.clone())
                .input("pad", Tensor::ints(DType::I32, &[4], &[1, 0, 0, 1]))
                .expect(f(&[3, 4], &[0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 0.0, 4.0, 5.0, 6.0, 0.0])),
            case("mirrored", &[1, 0, 2, 1], "reflect").expect(f(
                &[3, 6],
                &[6.0, 5.0, 4.0, 5.0, 6.0, 5.0, 3.0, 2.0, 1.0, 2.0, 3.0, 2.0, 6.0, 5.0, 4.0, 5.0, 6.0, 5.0],
            )),
            case("the border", &[0, 1, 1, 2], "replicate").expect(f(
                &[3, 6],
                &[1.0, 1.0, 2.0, 3.0, 3.0, 3.0, 4.0, 4.0, 5.0, 6.0, 6.0, 6.0, 4.0, 4.0, 5.0, 6.0, 6.0, 6.0],
            )),
            Case::new("integers")
                .input("x", Tensor::ints(DType::I32, &[1], &[5]))
                .constant("pad", [1, 1])
                .constant("mode", "constant")
                .constant("constant_val", -1)
                .expect(Tensor::ints(DType::I32, &[3], &[-1, 5, -1])),
        ]
    }
}

/// What stands where in the padded tensor.
struct Frame<'a> {
    mode: Mode,
    pad: &'a [i32],
    x: &'a [usize],
    out: &'a [usize],
}

impl Frame<'_> {
    /// Writes what axes `axis..` hold; where nothing of `x` stands, the constant is already there.
    fn run<T: Copy>(&self, axis: usize, a: &[T], r: &mut [T]) {
        if a.is_empty() {
            return;
        }
        let rank = self.x.len();
        if (axis..rank).all(|i| self.x[i] == self.out[i]) {
            r.copy_from_slice(a);
            return;
        }
        let [before, _] = padding(self.pad, rank, axis);
        let n = self.x[axis];
        let (from, to) = (a.len() / n, r.len() / self.out[axis]);
        if axis + 1 == rank {
            r[before..before + n].copy_from_slice(a);
        }
        for (i, r) in r.chunks_exact_mut(to).enumerate() {
            if axis + 1 == rank && (before..before + n).contains(&i) {
                continue;
            }
            if let Some(s) = self.mode.source(i, before, n) {
                self.run(axis + 1, &a[s * from..(s + 1) * from], r);
            }
        }
    }
}
