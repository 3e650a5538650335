//! How weights are stored.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use anemone_mil::ValueId;

use crate::calibration::Calibration;
use crate::error::{ConvertError, Result};
use crate::net::Net;
use crate::source::Tensor;

mod blocks;
mod carry;
mod half_floats;
mod int4;
mod int8;
mod lut;
mod palette;
mod pieces;
mod rule;
mod shared;

use blocks::Blocks;
use palette::Palette;
pub(crate) use rule::Recipe;
pub use rule::Rule;
pub(crate) use rule::name;
pub(crate) use shared::Shared;

/// A way to store weights: its name, and the form that it chooses for a matrix.
pub struct Scheme {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, for people: a line.
    pub about: &'static str,
    /// Of what use a text is to it.
    pub text: Text,
    choose: fn(&Tensor) -> Form,
}

/// Of what use it is to know what the layers of a model read on a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Text {
    /// None.
    Unused,
    /// Weights are stored better by it.
    Useful,
    /// Without it the model is little worth.
    Needed,
}

/// The form in which one matrix is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Form {
    /// Half floats.
    Halves,
    /// Integers with a scale for each block.
    Blocks(&'static Blocks),
    /// Indices into tables.
    Palette(&'static Palette),
}

/// How near the stored weights are to those of the source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Promise {
    /// The same numbers.
    Exact,
    /// No further off than this share of the largest magnitude in the row.
    Within(f32),
    /// Off by no more than this share of the weights, both as root mean squares of the matrix.
    Near(f64),
}

impl std::fmt::Debug for Scheme {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Every way to store weights.
pub static SCHEMES: &[Scheme] = &[
    half_floats::SCHEME,
    int8::SCHEME,
    int4::SCHEME,
    int4::ASYMMETRIC_SCHEME,
    lut::LUT4,
    lut::LUT6,
    lut::LUT8,
    carry::SCHEME,
];

/// The way named `name`.
#[must_use]
pub fn find(name: &str) -> Option<&'static Scheme> {
    SCHEMES.iter().find(|s| s.name == name)
}

/// Their names, for people.
#[must_use]
pub fn names() -> String {
    SCHEMES.iter().map(|s| s.name).collect::<Vec<_>>().join(" or ")
}

/// Whether it is a matrix from tokens or to logits, or a part of one.
fn of_vocabulary(tensor: &Tensor) -> bool {
    ["model.embed_tokens.weight", "lm_head.weight"].iter().any(|name| tensor.name().starts_with(name))
}

impl PartialEq for Scheme {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Scheme {}

impl Scheme {
    fn form(&self, matrix: &Tensor) -> Form {
        (self.choose)(matrix)
    }
}

impl Form {
    fn bytes(self, matrix: &Tensor) -> u64 {
        match self {
            Form::Halves => 2 * matrix.len() as u64,
            Form::Blocks(blocks) => blocks.bytes(matrix),
            Form::Palette(palette) => palette.bytes(matrix),
        }
    }

    /// What it is, for people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Form::Halves => "half floats",
            Form::Blocks(blocks) => blocks.name,
            Form::Palette(palette) => palette.name,
        }
    }

    pub(crate) fn promise(self, matrix: &Tensor) -> Promise {
        match self {
            Form::Halves => half_floats::promise(matrix),
            Form::Blocks(blocks) => blocks.promise,
            Form::Palette(palette) => palette.promise,
        }
    }

    /// Whether the Neural Engine computes with it.
    pub(crate) fn for_engine(self) -> bool {
        match self {
            Form::Halves | Form::Palette(_) => true,
            Form::Blocks(blocks) => blocks.block.is_none() && blocks.dtype.bits() == 8,
        }
    }
}

/// The weights of one conversion.
#[derive(Debug, Clone)]
pub(crate) struct Weights {
    pub(crate) recipe: Recipe,
    pub(crate) watch: Watch,
    /// What the layers read, where that is known.
    pub(crate) calibration: Option<Arc<Calibration>>,
    /// What makes the elements, shared by the functions of the package.
    pub(crate) shared: Shared,
}

impl Weights {
    /// Weights of which nobody watches the making, without a text.
    pub(crate) fn unwatched(recipe: &Recipe) -> Self {
        let (watch, shared) = (Watch::default(), Shared::default());
        Self { recipe: recipe.clone(), watch, calibration: None, shared }
    }

    pub(crate) fn add(&self, net: &mut Net<'_>, tensor: &Tensor) -> Result<ValueId> {
        match self.recipe.form(tensor) {
            Form::Halves => half_floats::add(net, tensor, self),
            Form::Blocks(blocks) => blocks.add(net, tensor, self),
            Form::Palette(palette) => palette.add(net, tensor, self),
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
