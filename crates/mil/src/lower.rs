//! Lowering: from an operation's plain meaning to a kernel that a plan runs.

use std::fmt::Debug;

use crate::op::{OpError, Operands, Out};
use crate::packed::Packed;

/// A compiled operation. What its operation knew of constants, it holds; the rest it gets at each run.
pub trait Kernel: Send + Sync + Debug {
    /// Computes the results. Must not allocate, and must give the same bits for any number of workers.
    ///
    /// # Errors
    /// If a run-time value is out of bounds.
    fn run(&self, x: &dyn Operands, out: &mut [Out<'_>], cx: &mut Context<'_>) -> Result<(), OpError>;

    /// How many floats of scratch space a run needs.
    fn scratch(&self) -> usize {
        0
    }

    /// Whether it accepts the operand as a strided view, which may lie in a state as half floats
    /// ([`Operands::layout_at`], [`Operands::halves_at`]).
    fn accepts_view(&self, _param: usize) -> bool {
        false
    }

    /// Whether it ignores the operand at run time because it holds it, packed for this machine.
    fn holds(&self, _param: usize) -> bool {
        false
    }
}

/// What a kernel may use while it runs.
pub struct Context<'a> {
    /// Threads to share the work with.
    pub workers: &'a dyn Workers,
    /// As many floats as [`Kernel::scratch`] asked for, with any content.
    pub scratch: &'a mut [f32],
}

/// Threads that share work.
pub trait Workers: Sync {
    /// How many threads there are, the caller's included.
    fn count(&self) -> usize;

    /// Splits `out` into pieces of `chunk` elements (the last may be shorter) and calls `f(index, piece)` once for each,
    /// on any thread. Returns when all are done.
    fn for_chunks(&self, out: &mut [f32], chunk: usize, f: &(dyn Fn(usize, &mut [f32]) + Sync));
}

/// One thread: the caller's.
#[derive(Debug, Clone, Copy)]
pub struct Alone;

impl Workers for Alone {
    fn count(&self) -> usize {
        1
    }

    fn for_chunks(&self, out: &mut [f32], chunk: usize, f: &(dyn Fn(usize, &mut [f32]) + Sync)) {
        out.chunks_mut(chunk).enumerate().for_each(|(i, piece)| f(i, piece));
    }
}

/// The operands of an operation to be lowered: types, the elements of small constants, and large constants as they are
/// packed.
pub trait LowerOperands: Operands {
    /// The constant that the argument is, still packed; `None` if it is known only at run time.
    fn packed_at(&self, param: usize, index: usize) -> Option<Packed>;
}
