//! Numbers in slices, fast: dot products, matrix products, attention, element types.
//!
//! # How this crate is laid out
//!
//! A kernel is written **once**, over the vector of sixteen lanes of [`lanes`], and every instruction set is one
//! implementation of that vector: `lanes/scalar.rs`, `lanes/avx2.rs`, `lanes/avx512.rs`, `lanes/neon.rs`. These four files
//! are the only ones that name an instruction of vectors (`lanes/amx.rs` has those of tiles). Each lane
//! operation is defined to the bit, so that **every instruction set gives the same bits as the scalar one**, and the
//! tests compare for equality, not for closeness.
//!
//! A kernel takes slices, checks their lengths first (a wrong length is a bug of the caller: it panics with the numbers),
//! and allocates nothing. It takes an [`Isa`] as its first argument: choose it once, with [`Isa::detect`].
//!
//! # What is promised about bits
//!
//! - The same inputs give the same bits on every instruction set, for any split of the rows over calls and threads.
//! - A product over `n` tokens gives, for each token, the bits of the product over that token alone.
//! - [`linear::tiles`] is another product, with numbers of its own, for processors that have tiles; it keeps the rest.
//! - NaN payloads and the sign of a NaN are not promised.
#![warn(missing_docs)]
#![allow(clippy::needless_range_loop, reason = "register tiles are indexed by token, chunk and vector together")]

pub mod attention;
pub mod buffer;
pub mod columns;
pub mod convert;
pub mod convolve;
pub mod elementwise;
pub mod isa;
mod lanes;
pub mod linear;
mod math;
pub mod norm;
pub mod peak;
pub mod reduce;
pub mod rope;
pub mod softmax;
pub mod words;

pub use isa::Isa;
