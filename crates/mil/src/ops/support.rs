//! What several operations share.

pub mod broadcast;
pub mod elementwise;
