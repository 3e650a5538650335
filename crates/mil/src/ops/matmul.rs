//! `matmul`: matrix products over the last two axes, with the leading axes broadcast, as numpy's. `transpose_x` and
//! `transpose_y` exchange the last two axes first. A vector `x` is a row, a vector `y` a column; its axis leaves the result.
//! Integers wrap.

mod both;

use smallvec::smallvec;

use crate::case::Case;
use crate::lower::{Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::broadcast::{broadcast, runs};
use crate::ops::support::dims;
use crate::ops::support::matrix::Matrix;
use crate::ops::support::number::{Number, add_scaled, dot};
use crate::ops::support::products::{Lowered, Roles};
use crate::tensor::{Data, DataMut, Tensor};
use crate::types::{Class, DType, Opset};

pub(super) struct Matmul;

const X: usize = 0;
const Y: usize = 1;
const TRANSPOSE_X: usize = 2;
const TRANSPOSE_Y: usize = 3;

/// One product: (m, k) · (k, n), the operands stored as they are or turned.
#[derive(Clone, Copy)]
struct Product {
    m: usize,
    k: usize,
    n: usize,
    turned_x: bool,
    turned_y: bool,
}

impl Product {
    fn new(x: &dyn Operands) -> Result<Self, OpError> {
        let (a, b) = (x.shape(X), x.shape(Y));
        let turned_x = a.len() > 1 && x.bool_or(TRANSPOSE_X, false)?;
        let turned_y = b.len() == 1 || x.bool_or(TRANSPOSE_Y, false)?;
        let (m, k) = match *a {
            [.., k, m] if turned_x => (m, k),
            [.., m, k] => (m, k),
            [k] => (1, k),
            [] => return Err(x.bad(X, "a vector, or a tensor of higher rank", a)),
        };
        let (inner, n) = match *b {
            [k] => (k, 1),
            [.., n, k] if turned_y => (k, n),
            [.., k, n] => (k, n),
            [] => return Err(x.bad(Y, "a vector, or a tensor of higher rank", b)),
        };
        if inner != k {
            return Err(OpError::mismatch(
                "matrices whose inner extents agree",
                format!("{a:?} and {b:?}, transposed: {turned_x}, {turned_y}"),
            ));
        }
        Ok(Self { m, k, n, turned_x, turned_y })
    }

    fn run<T: Number>(self, a: &[T], b: &[T], out: &mut [T]) {
        let Self { m, k, n, turned_x, turned_y } = self;
        let x = |i: usize, p: usize| if turned_x { a[p * m + i] } else { a[i * k + p] };
        for (i, row) in out.chunks_exact_mut(n).enumerate() {
            match (turned_x, turned_y) {
                (_, false) => {
                    row.fill(T::ZERO);
                    for p in 0..k {
                        add_scaled(row, x(i, p), &b[p * n..(p + 1) * n]);
                    }
                }
                (false, true) => {
                    for (j, y) in row.iter_mut().enumerate() {
                        *y = dot(&a[i * k..(i + 1) * k], &b[j * k..(j + 1) * k]);
                    }
                }
                (true, true) => {
                    for (j, y) in row.iter_mut().enumerate() {
                        *y = (0..k).fold(T::ZERO, |s, p| s.plus(x(i, p).times(b[j * k + p])));
                    }
                }
            }
        }
    }

    fn batches<T: Number>(self, x: &dyn Operands, a: &[T], b: &[T], out: &mut [T]) -> Result<(), OpError> {
        let (xb, yb) = (batch(x.shape(X)), batch(x.shape(Y)));
        let (mk, kn, mn) = (self.m * self.k, self.k * self.n, self.m * self.n);
        runs(&broadcast(xb, yb)?, [xb, yb], |run| {
            for t in 0..run.len {
                let (o, i, j) = (run.out + t, run.at[0] + t * run.step[0], run.at[1] + t * run.step[1]);
                self.run(&a[i * mk..(i + 1) * mk], &b[j * kn..(j + 1) * kn], &mut out[o * mn..(o + 1) * mn]);
            }
        });
        Ok(())
    }
}

/// The axes in front of the matrices.
fn batch(shape: &[usize]) -> &[usize] {
    &shape[..shape.len().saturating_sub(2)]
}

/// The kernel for rows with a constant matrix.
fn with_constant(x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
    let operands: &dyn Operands = x;
    let turned_x = operands.shape(X).len() > 1 && operands.bool_or(TRANSPOSE_X, false).ok()?;
    if turned_x || operands.shape(X).is_empty() {
        return None;
    }
    let weight = x.packed_at(Y, 0)?;
    let matrix = if operands.bool_or(TRANSPOSE_Y, false).ok()? {
        (weight.ty().shape.len() == 2).then(|| Matrix::new(&weight, x.pack_cache()))??
    } else {
        Matrix::turned(&weight, x.pack_cache())?
    };
    let roles = Roles { x: X, weights: Y, biases: None, added: None };
    Some(Box::new(Lowered::of(roles, smallvec![matrix], x)))
}

impl Op for Matmul {
    fn name(&self) -> &'static str {
        "matmul"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::required("x"),
                Param::required("y"),
                Param::optional("transpose_x"),
                Param::optional("transpose_y"),
            ]
        }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let (mut ty, other) = (dims::numbers(x, X)?, x.dtype(Y));
        // Since iOS 17 one operand may be a constant of another width.
        if ty.dtype.class() != other.class() || ty.dtype.class() == Class::Bool {
            return Err(x.bad(Y, format!("numbers as in x, {}", ty.dtype), other));
        }
        let product = Product::new(x)?;
        let (a, b) = (x.shape(X), x.shape(Y));
        ty.shape = broadcast(batch(a), batch(b))?;
        if a.len() > 1 {
            ty.shape.push(product.m);
        }
        if b.len() > 1 {
            ty.shape.push(product.n);
        }
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        if out[0].shape.contains(&0) {
            return Ok(());
        }
        let product = Product::new(x)?;
        match (x.data(X)?, x.data(Y)?, &mut out[0].data) {
            (Data::F32(a), Data::F32(b), DataMut::F32(r)) => product.batches(x, a, b, r),
            (Data::I32(a), Data::I32(b), DataMut::I32(r)) => product.batches(x, a, b, r),
            _ => Err(dims::class_mismatch()),
        }
    }

    fn lower(&self, x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        with_constant(x).or_else(|| Some(Box::new(both::Both::new(x)?)))
    }

    fn cases(&self) -> Vec<Case> {
        let f = |shape: &[usize], v: &[f32]| Tensor::floats(DType::F16, shape, v);
        let a = f(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let a_turned = f(&[3, 2], &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
        let b = f(&[3, 2], &[1.0, -1.0, 0.0, 2.0, 3.0, 1.0]);
        let b_turned = f(&[2, 3], &[1.0, 0.0, 3.0, -1.0, 2.0, 1.0]);
        let ab = f(&[2, 2], &[10.0, 6.0, 22.0, 12.0]);
        let case = |name, x: &Tensor, y: &Tensor| Case::new(name).input("x", x.clone()).input("y", y.clone());
        vec![
            case("matrices", &a, &b).expect(ab.clone()),
            case("y turned", &a, &b_turned)
                .constant("transpose_x", false)
                .constant("transpose_y", true)
                .expect(ab.clone()),
            case("x turned", &a_turned, &b).constant("transpose_x", true).expect(ab.clone()),
            case("both turned", &a_turned, &b_turned)
                .constant("transpose_x", true)
                .constant("transpose_y", true)
                .expect(ab),
            case(
                "leading axes broadcast",
                &f(&[2, 1, 1, 2], &[1.0, 2.0, 3.0, 4.0]),
                &f(&[2, 2, 1], &[1.0, 1.0, 1.0, -1.0]),
            )
            .expect(f(&[2, 2, 1, 1], &[3.0, -1.0, 7.0, -1.0])),
            case("a row vector", &f(&[2], &[1.0, 2.0]), &f(&[2, 2, 1], &[1.0, 1.0, 1.0, -1.0]))
                .expect(f(&[2, 1], &[3.0, -1.0])),
            case("a column vector", &a, &f(&[3], &[1.0, 0.0, -1.0])).expect(f(&[2], &[-2.0, -2.0])),
            case("two vectors", &f(&[2], &[1.0, 2.0]), &f(&[2], &[3.0, 4.0])).expect(f(&[], &[11.0])),
            case(
                "integers",
                &Tensor::ints(DType::I32, &[1, 2], &[i32::MAX, 3]),
                &Tensor::ints(DType::I32, &[2, 1], &[2, 4]),
            )
            .expect(Tensor::ints(DType::I32, &[1, 1], &[10])),
            case("nothing to sum", &f(&[1, 0], &[]), &f(&[0, 2], &[])).expect(f(&[1, 2], &[0.0, 0.0])),
        ]
    }
}
