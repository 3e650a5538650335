//! The parts of the binary `anemone` that are worth a test of their own.
//!
//! Not a library for others: use the crate `anemone`.

pub mod acquire;
pub mod bench;
pub mod cache_name;
pub mod causes;
pub mod doctor;
pub mod energy;
pub mod given;
pub mod home;
pub mod host;
pub mod lines;
pub mod memory;
pub mod notices;
pub mod npy;
pub mod numbers;
pub mod placement;
pub mod room;
pub mod sampling;
pub mod tensor_file;
pub mod text;
pub mod units;
pub mod values;
pub mod watchdog;
pub mod words;
