//! Apple's Core ML behind a safe API: compiled packages in a cache, functions with their arrays made once, states that are
//! zeroed by us, placement, and errors with what is known of them. An empty shell on other systems, except for the error
//! dictionary and all that decides above the calls.
//!
//! # What may be called from where
//!
//! Core ML wants the calls on one model one after the other, and the predictions on one state one after the other. Here:
//!
//! - [`Function`] is `Send` and `Sync`: it holds a lock for the length of a call, so calls of one function wait for each
//!   other on whatever threads they are made.
//! - [`State`] is `Send` and not `Sync`, and a call takes it exclusively: two predictions on one state do not compile.
//! - Everything blocks the calling thread: compiling for minutes, predictions for milliseconds. Nothing may be called from
//!   inside the closures that see an array; those must not block.
//! - Notices of heat and power ([`Watch`]) are read when asked, from any thread.
//!
//! # Layers
//!
//! [`Framework`] is the narrow trait of what Core ML is asked to do. `Apple` is Core ML itself (on Apple systems only), the
//! feature `fake` has one that runs packages on the processor, with Core ML's habits: padded rows, states full of garbage,
//! arrays that move. Everything else is written once over the trait and tested with the fake.

#[cfg(target_vendor = "apple")]
mod apple;
mod cache;
mod conditions;
mod configuration;
mod device;
pub mod dictionary;
mod element;
mod error;
mod failure;
#[cfg(any(test, feature = "fake"))]
pub mod fake;
mod framework;
mod model;
mod os;
mod plan;
mod port;
mod state;
mod units;
mod view;

#[cfg(target_vendor = "apple")]
pub use apple::Apple;
pub use cache::{CompileCache, Compiled, Progress};
pub use conditions::{Conditions, Notice, Pressure, Thermal, Watch};
pub use configuration::{Configuration, ReshapeFrequency, Specialization};
pub use device::{Device, DeviceKind};
pub use element::ElementType;
pub use error::{CoreMlError, Result};
pub use failure::Failure;
pub use framework::Framework;
pub use model::{Function, Model, ModelOptions};
pub use plan::{ComputePlan, PlannedFunction, PlannedOperation};
pub use port::{Port, Ports};
pub use state::State;
pub use units::ComputeUnits;
pub use view::{View, ViewMut};
