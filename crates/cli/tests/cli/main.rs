//! The binary `anemone`, run as users run it.

mod convert;
mod help;
mod inspect;
mod models;
mod predict;
mod support;
