//! The parts of the binary `anemone` that are worth a test of their own.
//!
//! Not a library for others: use the crate `anemone`.

pub mod acquire;
pub mod cache_name;
pub mod causes;
pub mod given;
pub mod home;
pub mod lines;
pub mod npy;
pub mod numbers;
pub mod room;
pub mod sampling;
pub mod tensor_file;
pub mod units;
pub mod values;
pub mod words;
