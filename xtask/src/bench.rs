//! Measurements of what users feel, on this machine. One a file.

pub mod cpu;
mod plot;
pub mod session;
