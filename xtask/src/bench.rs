//! Measurements of what users feel, on this machine. One a file.

mod cell;
pub mod cpu;
mod machine;
mod models;
mod ours;
mod peer;
mod place;
mod plot;
mod process;
pub mod promises;
pub mod session;

pub use ours::{Child, child};

#[allow(clippy::print_stderr, reason = "a chore tells how far it is")]
fn tell(text: &str) {
    eprintln!("{text}");
}
