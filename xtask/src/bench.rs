//! Measurements of what users feel, on this machine. One a file.

mod plot;
pub mod session;
