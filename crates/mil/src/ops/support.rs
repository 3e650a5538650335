//! What several operations share.

pub mod broadcast;
pub mod dims;
pub mod elementwise;
pub mod erf;
pub mod examples;
pub mod filling;
pub mod number;
pub mod slicing;
pub mod sort;
pub mod strided;
