//! Work that a thread may be left behind in.

use std::fmt::Debug;

/// How many results a piece of lasting work has at most.
pub const RESULTS: usize = 32;

/// Work that owns what it reads, but for one small input, and whose pieces may be computed twice with the same results. A
/// thread that the system puts aside in the middle of a piece can be left there, while others go on: it reads nothing
/// that they change, and writes nothing that they read.
pub trait Lasting: Send + Sync + Debug {
    /// Floats of the input.
    fn inputs(&self) -> usize;

    /// How many pieces there are.
    fn pieces(&self) -> usize;

    /// Writes the input for `x`.
    fn prepare(&self, x: &[f32], input: &mut [f32]);

    /// Computes the results of a piece, and leaves what is behind them. The same bits for the same input.
    fn piece(&self, input: &[f32], piece: usize, results: &mut [f32; RESULTS]);
}
