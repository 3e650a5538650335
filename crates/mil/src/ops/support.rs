//! What several operations share.

pub mod broadcast;
pub mod elementwise;
pub mod erf;
pub mod examples;
