//! The binary `anemone`, run as users run it.

mod apple;
mod chat;
mod convert;
mod documented;
mod help;
mod inspect;
mod lint;
mod models;
mod parts;
mod predict;
mod run;
mod sessions;
mod support;
mod tiny;
#[cfg(unix)]
mod typed;
mod verify;
