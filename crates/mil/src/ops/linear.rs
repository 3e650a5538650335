//! `linear`: `x · weightᵀ + bias`. `x` is (…, k), `weight` is (n, k), `bias` is (n); the result is (…, n).

use smallvec::smallvec;

use crate::case::Case;
use crate::fused::projections::Projections;
use crate::lower::{Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::products::{Lowered, Roles};
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

#[derive(Debug)]
pub(crate) struct Linear;

const X: usize = 0;
const WEIGHT: usize = 1;
const BIAS: usize = 2;

impl Op for Linear {
    fn name(&self) -> &'static str {
        "linear"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("x"), Param::required("weight"), Param::optional("bias")] }
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        let (mut ty, weight) = (x.ty(X), x.shape(WEIGHT));
        let (&[n, k], Some(last)) = (weight, ty.shape.last_mut()) else {
            return Err(x.bad(WEIGHT, "a matrix (n, k), and x of rank 1 or more", weight));
        };
        if *last != k {
            return Err(OpError::mismatch(format!("a last axis of {k}, as the weight's"), format!("{last}")));
        }
        *last = n;
        if x.has(BIAS) && x.shape(BIAS) != [n] {
            return Err(x.bad(BIAS, format!("shape [{n}]"), x.shape(BIAS)));
        }
        Ok(smallvec![ty])
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let (a, w) = (x.f32s(X)?, x.f32s(WEIGHT)?);
        let (n, k) = (x.shape(WEIGHT)[0], x.shape(WEIGHT)[1]);
        let bias = if x.has(BIAS) { Some(x.f32s(BIAS)?) } else { None };
        if n == 0 {
            return Ok(());
        }
        for (i, row) in out[0].f32s()?.chunks_exact_mut(n).enumerate() {
            let a = &a[i * k..(i + 1) * k];
            for (j, y) in row.iter_mut().enumerate() {
                let dot: f32 = a.iter().zip(&w[j * k..(j + 1) * k]).map(|(a, w)| a * w).sum();
                *y = dot + bias.map_or(0.0, |b| b[j]);
            }
        }
        Ok(())
    }

    fn lower(&self, x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        let roles = Roles { x: X, weights: WEIGHT, biases: Some(BIAS), added: None };
        Some(Box::new(Lowered::new(roles, x)?))
    }

    fn joined(&self) -> Option<&'static dyn Op> {
        Some(&Projections)
    }

    fn cases(&self) -> Vec<Case> {
        let x = Tensor::floats(DType::F32, &[2, 3], &[1.0, 2.0, 3.0, -1.0, 0.5, 0.0]);
        let w = Tensor::floats(DType::F32, &[2, 3], &[1.0, 0.0, -1.0, 2.0, 2.0, 2.0]);
        vec![
            Case::new("with bias")
                .input("x", x.clone())
                .input("weight", w.clone())
                .input("bias", Tensor::floats(DType::F32, &[2], &[10.0, 20.0]))
                .expect(Tensor::floats(DType::F32, &[2, 2], &[8.0, 32.0, 9.0, 19.0])),
            Case::new("without bias").input("x", x).input("weight", w).expect(Tensor::floats(
                DType::F32,
                &[2, 2],
                &[-2.0, 12.0, -1.0, -1.0],
            )),
        ]
    }
}
