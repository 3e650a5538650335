//! Elementwise operations as kernels: their plain meaning, or a vectorized function, in pieces that all threads share.

use std::fmt;

use anemone_kernels::Isa;
use anemone_kernels::elementwise::{Unary, unary};

use super::broadcast::{Runs, along};
use crate::lower::{Context, Kernel, LowerOperands};
use crate::op::{OpError, Operands, Out};
use crate::types::Class;

/// Elements of a piece of work: as many as the first cache holds of all operands.
pub(crate) const PIECE: usize = 1 << 12;

/// Whether the first `n` parameters are floating.
fn floats(x: &dyn LowerOperands, n: usize) -> bool {
    (0..n).all(|param| x.ty_at(param, 0).0.class() == Class::Float)
}

/// The kernel that computes `f` of each element of `x`, if it is floating.
pub fn each(x: &dyn LowerOperands, f: impl Fn(f32) -> f32 + Send + Sync + 'static) -> Option<Box<dyn Kernel>> {
    floats(x, 1).then(|| Box::new(Each(f)) as Box<dyn Kernel>)
}

/// The kernel that computes a vectorized function of each element of `x`, if it is floating. The function is exact to a few units
/// in the last place.
pub fn function(x: &dyn LowerOperands, op: Unary) -> Option<Box<dyn Kernel>> {
    floats(x, 1).then(|| Box::new(Function { isa: Isa::detect(), op }) as Box<dyn Kernel>)
}

/// The kernel that computes `f` of each pair of elements of `x` and `y`, broadcast, if they are floating.
pub fn pairs(x: &dyn LowerOperands, f: impl Fn(f32, f32) -> f32 + Send + Sync + 'static) -> Option<Box<dyn Kernel>> {
    floats(x, 2).then(|| Box::new(Pairs(f)) as Box<dyn Kernel>)
}

struct Each<F>(F);

impl<F> fmt::Debug for Each<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Each")
    }
}

impl<F: Fn(f32) -> f32 + Send + Sync> Kernel for Each<F> {
    fn run(&self, x: &dyn Operands, out: &mut [Out<'_>], cx: &mut Context<'_>) -> Result<(), OpError> {
        let x = x.f32s(0)?;
        cx.workers.for_chunks(out[0].f32s()?, PIECE, &|piece, out| {
            out.iter_mut().zip(&x[piece * PIECE..]).for_each(|(o, &v)| *o = (self.0)(v));
        });
        Ok(())
    }
}

#[derive(Debug)]
struct Function {
    isa: Isa,
    op: Unary,
}

impl Kernel for Function {
    fn run(&self, x: &dyn Operands, out: &mut [Out<'_>], cx: &mut Context<'_>) -> Result<(), OpError> {
        let x = x.f32s(0)?;
        cx.workers.for_chunks(out[0].f32s()?, PIECE, &|piece, out| {
            unary(self.isa, self.op, &x[piece * PIECE..][..out.len()], out);
        });
        Ok(())
    }
}

struct Pairs<F>(F);

impl<F> fmt::Debug for Pairs<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pairs")
    }
}

impl<F: Fn(f32, f32) -> f32 + Send + Sync> Kernel for Pairs<F> {
    fn run(&self, x: &dyn Operands, out: &mut [Out<'_>], cx: &mut Context<'_>) -> Result<(), OpError> {
        let (a, b, out) = (x.f32s(0)?, x.f32s(1)?, &mut out[0]);
        let runs = Runs::new(out.shape, [x.shape(0), x.shape(1)]);
        cx.workers.for_chunks(out.f32s()?, PIECE, &|piece, out| {
            let first = piece * PIECE;
            runs.within(first..first + out.len(), |run| {
                along(&run, &mut out[run.out - first..][..run.len], a, b, &self.0);
            });
        });
        Ok(())
    }
}
