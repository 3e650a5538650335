//! Projections: several `linear` of the same x, as the queries, keys and values of a layer: one pass over their weights.
//! No spelling is looked for; `linear` says that it is joined into this.

use crate::case::Case;
use crate::lower::{Kernel, LowerOperands};
use crate::op::{Op, OpError, Operands, Out, Param, Results};
use crate::ops::support::products::{Lowered, Roles};
use crate::tensor::Tensor;
use crate::types::{DType, Opset};

/// Several projections as one operation.
#[derive(Debug)]
pub struct Projections;

const X: usize = 0;
const WEIGHT: usize = 1;
const BIAS: usize = 2;

impl Op for Projections {
    fn name(&self) -> &'static str {
        "projections"
    }

    fn since(&self) -> Opset {
        Opset::CoreML3
    }

    fn params(&self) -> &'static [Param] {
        // The biases: none, or as many as there are weights.
        const { &[Param::required("x"), Param::variadic("weight"), Param::variadic("bias")] }
    }

    fn results(&self, x: &dyn Operands) -> usize {
        x.count(WEIGHT)
    }

    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError> {
        if x.has(BIAS) && x.count(BIAS) != x.count(WEIGHT) {
            return Err(OpError::mismatch("a bias for each weight, or none", format!("{}", x.count(BIAS))));
        }
        (0..x.count(WEIGHT))
            .map(|i| {
                let (mut ty, weight) = (x.ty(X), x.ty_at(WEIGHT, i).1);
                match (weight, ty.shape.last_mut()) {
                    (&[n, k], Some(last)) if *last == k => *last = n,
                    _ => return Err(x.bad(WEIGHT, "matrices (n, k) for rows of k", weight)),
                }
                Ok(ty)
            })
            .collect()
    }

    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError> {
        let rows = x.f32s(X)?;
        for (i, out) in out.iter_mut().enumerate() {
            let weight = x.f32s_at(WEIGHT, i)?;
            let &[n, k] = x.ty_at(WEIGHT, i).1 else { return Err(x.bad(WEIGHT, "matrices", x.shape(WEIGHT))) };
            let bias = if x.has(BIAS) { Some(x.f32s_at(BIAS, i)?) } else { None };
            for (j, y) in out.f32s()?.iter_mut().enumerate() {
                let (row, w) = (&rows[j / n * k..][..k], &weight[j % n * k..][..k]);
                *y = row.iter().zip(w).map(|(a, b)| a * b).sum::<f32>() + bias.map_or(0.0, |b| b[j % n]);
            }
        }
        Ok(())
    }

    fn lower(&self, x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        let roles = Roles { x: X, weights: WEIGHT, biases: Some(BIAS), added: None };
        Some(Box::new(Lowered::new(roles, x)?))
    }

    fn cases(&self) -> Vec<Case> {
        let t = |shape: &[usize], v: &[f32]| Tensor::floats(DType::F32, shape, v);
        vec![
            Case::new("two, of different heights")
                .input("x", t(&[2, 2], &[1.0, 2.0, 3.0, 4.0]))
                .input("weight", t(&[1, 2], &[1.0, -1.0]))
                .input("weight", t(&[2, 2], &[0.0, 1.0, 2.0, 0.0]))
                .input("bias", t(&[1], &[0.5]))
                .input("bias", t(&[2], &[0.0, 10.0]))
                .expect(t(&[2, 1], &[-0.5, -0.5]))
                .expect(t(&[2, 2], &[2.0, 12.0, 4.0, 16.0])),
        ]
    }
}
