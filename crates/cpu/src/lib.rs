//! Whole-program work for this machine's processor: a function of a program is specialised to its input shapes, optimised,
//! planned, and run with its states in place.
//!
//! ```text
//! specialize(function, shapes) -> Graph    every type known, constants folded
//! pass::run(Graph)             -> Graph    a flat list of passes
//! Plan::new(…)                 -> Plan     kernels chosen, memory laid out; immutable and shared
//! Instance::new(Arc<Plan>)     -> Instance the buffers; the last allocation
//! Instance::run(&mut State)                no allocation, no look-up by name
//! ```

mod copy;
mod error;
mod family;
mod graph;
mod instance;
mod kept;
mod lower;
mod memory;
mod pass;
mod plan;
mod pool;
mod schedule;
mod specialize;
mod state;
mod strict;
mod variant;
mod widths;

pub use error::{PlanError, RunError};
pub use graph::Graph;
pub use instance::Instance;
pub use plan::{Note, Plan, PlanOptions, Port, Varying};
pub use pool::Pool;
pub use state::{State, StateError, StateLayout, StateSpec};
pub use strict::Overflow;
pub use widths::{Widths, worthwhile_width};
