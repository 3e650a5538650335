//! How weights are stored.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use anemone_mil::ValueId;

use crate::error::{ConvertError, Result};
use crate::net::Net;
use crate::source::Tensor;

mod blocks;
mod carry;
mod half_floats;
mod int4;
mod int8;
mod shared;

use blocks::Blocks;
pub(crate) use shared::Shared;

/// A way to store weights: its name, and the form that it chooses for a matrix.
pub struct Scheme {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, for people: a line.
    pub about: &'static str,
    choose: fn(&Tensor) -> Form,
}

/// The form in which one matrix is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Form {
    /// Half floats.
    Halves,
    /// Integers with a scale for each block.
    Blocks(&'static Blocks),
}

/// How near the stored weights are to those of the source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Promise {
    /// The same numbers.
    Exact,
    /// No further off than this share of the largest magnitude in the row.
    Within(f32),
}

impl std::fmt::Debug for Scheme {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Every way to store weights.
pub static SCHEMES: &[Scheme] =
    &[half_floats::SCHEME, int8::SCHEME, int4::SCHEME, int4::ASYMMETRIC_SCHEME, carry::SCHEME];

/// The way named `name`.
#[must_use]
pub fn find(name: &str) -> Option<&'static Scheme> {
    SCHEMES.iter().find(|s| s.name == name)
}

impl Scheme {
    /// Bytes that a matrix takes in the package.
    #[must_use]
    pub fn bytes(&self, matrix: &Tensor) -> u64 {
        self.form(matrix).bytes(matrix)
    }

    pub(crate) fn form(&self, matrix: &Tensor) -> Form {
        (self.choose)(matrix)
    }
}

impl Form {
    fn bytes(self, matrix: &Tensor) -> u64 {
        match self {
            Form::Halves => 2 * matrix.len() as u64,
            Form::Blocks(blocks) => blocks.bytes(matrix),
        }
    }

    /// What it is, for people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Form::Halves => "half floats",
            Form::Blocks(blocks) => blocks.name,
        }
    }

    pub(crate) fn promise(self, matrix: &Tensor) -> Promise {
        match self {
            Form::Halves => half_floats::promise(matrix),
            Form::Blocks(blocks) => blocks.promise,
        }
    }
}

/// The weights of one conversion.
#[derive(Debug, Clone)]
pub(crate) struct Weights {
    pub(crate) scheme: &'static Scheme,
    pub(crate) watch: Watch,
    /// What makes the elements, shared by the functions of the package.
    pub(crate) shared: Shared,
}

impl Weights {
    pub(crate) fn add(&self, net: &mut Net<'_>, tensor: &Tensor) -> Result<ValueId> {
        match self.scheme.form(tensor) {
            Form::Halves => half_floats::add(net, tensor, self),
            Form::Blocks(blocks) => blocks.add(net, tensor, self),
        }
    }
}

/// How far the writing of weights has come, and whether it should stop.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    /// Weights that were looked at, written or compared so far: each is so once, in [`STEPS`] steps.
    pub done: Arc<AtomicU64>,
    /// The step under way, of [`STEPS`].
    pub(crate) step: Arc<AtomicUsize>,
    /// Set it to stop: the conversion ends with an error and leaves nothing behind.
    pub stop: Arc<AtomicBool>,
}

/// What is done with all weights, one after the other.
pub const STEPS: [&str; 3] = ["reading", "writing", "comparing"];

impl Watch {
    /// What is being done.
    #[must_use]
    pub fn step(&self) -> &'static str {
        STEPS[self.step.load(Ordering::Relaxed).min(STEPS.len() - 1)]
    }

    /// Begins a step of [`STEPS`].
    pub(crate) fn begin(&self, step: usize) {
        self.step.store(step, Ordering::Relaxed);
    }
}

/// Rows are made in pieces of about this many weights.
const PIECE: usize = 1 << 20;

/// Refuses weights that half floats cannot hold.
pub(crate) fn check_half(name: &str, values: &[f32]) -> Result<()> {
    match values.iter().find(|v| !representable(**v)) {
        None => Ok(()),
        Some(v) => Err(ConvertError::Unrepresentable { tensor: name.to_owned(), value: *v }),
    }
}

/// Whether a half float is near the value: finite, and not beyond the largest.
fn representable(v: f32) -> bool {
    half::f16::from_f32(v).is_finite()
}

fn unrepresentable(name: &str, value: f32) -> io::Error {
    io::Error::other(ConvertError::Unrepresentable { tensor: name.to_owned(), value })
}

/// Refuses weights that are not finite.
fn check_finite(name: &str, values: &[f32]) -> io::Result<()> {
    match values.iter().find(|v| !v.is_finite()) {
        None => Ok(()),
        Some(v) => Err(unrepresentable(name, *v)),
    }
}
