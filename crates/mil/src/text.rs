//! The text form of programs, in the syntax of the `model.mil` that Apple's compiler leaves in compiled models.
//!
//! ```text
//! program(1.3)
//! [buildInfo = dict<string, string>({{"coremltools-version", "9.0"}})]
//! {
//!     func main<ios18>(tensor<fp16, [1, 2]> x, state<tensor<fp16, [2]>> total) {
//!         tensor<fp16, [2]> old = read_state(input = total)[name = string("old")];
//!         int32 axis = const()[name = string("axis"), val = int32(0)];
//!         bool interleave = const()[name = string("interleave"), val = bool(false)];
//!         tensor<fp16, [2]> w = const()[name = string("w"), val = tensor<fp16, [2]>([0x1p+0, -0x1.8p-1])];
//!         tensor<fp16, [1, 2]> y = mul(x = x, y = w)[name = string("y")];
//!         write_state(data = w, input = total)[name = string("old_write_state")];
//!     } -> (y);
//! }
//! ```
//!
//! From operation set CoreML8 (`ios18`) on, scalars are written as above and the header says 1.3; before it, `1.0` and
//! scalars are tensors without axes, `tensor<string, []>("old")`. Both are read. Elements in a weight file are
//! `tensor<fp16, [64, 64]>(BLOBFILE(path = string("@model_path/weights/weight.bin"), offset = uint64(64)))`.
//!
//! What Apple's form has no words for is written like this:
//! - nested blocks follow the attributes of their operation: `block(int32 i) { … } -> (j)`;
//! - attributes of a block follow its outputs, those of a function its inputs;
//! - names that are no identifiers are quoted;
//! - floating elements that are not finite are `inf`, `-inf`, `nan` and, for a NaN with other bits, `bits(0x7e01)`;
//! - a tensor type of unknown rank is `tensor<fp16, [...]>`.
//!
//! Ports are not part of the text: they belong to the model description.

use std::fmt;

mod elements;
mod lex;
mod literal;
mod number;
mod parse;
mod print;

use bytes::Bytes;

use crate::decode::Blobs;
use crate::error::MilError;
use crate::program::Program;
use crate::types::DType;

/// Reads a program from text; `blobs` has the weight files that it refers to ([`NoBlobs`], if it refers to none).
///
/// Whatever the text is, reading it takes memory and time in proportion to its length; nesting is bounded by
/// [`MAX_DEPTH`](crate::decode::MAX_DEPTH), and tensors by the bounds of [`decode`](crate::decode()).
///
/// # Errors
/// [`MilError::Text`], with line and column.
pub fn parse(text: &str, blobs: &dyn Blobs) -> Result<Program, MilError> {
    parse::program(text, blobs)
}

/// The text of a program: what its `Display` gives.
#[must_use]
pub fn print(program: &Program) -> String {
    program.to_string()
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print::program(self, f)
    }
}

/// No weight files.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoBlobs;

impl Blobs for NoBlobs {
    fn blob(&self, file: &str, _: u64) -> Result<(DType, Bytes), String> {
        Err(format!("no weight files are given, and `{file}` is asked for"))
    }
}

#[cfg(test)]
mod tests;
