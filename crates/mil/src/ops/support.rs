//! What several operations share.

pub mod affine;
pub mod bits;
pub mod blocks;
pub mod broadcast;
pub mod channels;
pub mod dims;
pub mod elementwise;
pub mod erf;
pub mod examples;
pub mod filling;
pub mod lanes;
pub mod matrix;
pub mod number;
pub mod palette;
pub mod reduce;
pub mod slicing;
pub mod sort;
pub mod sparse;
pub mod strided;
