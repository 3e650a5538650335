//! A language model that keeps its conversation warm: model, tokenizer, chat template, sampler, session.

mod detokenizer;
mod error;
mod generation;
mod language_model;
mod message;
mod overflow;
mod runner;
mod sampler;
mod session;
mod template;
#[cfg(test)]
mod testing;
mod tokenizer;

pub use detokenizer::Detokenizer;
pub use error::{Error, Result};
pub use generation::Generation;
pub use language_model::LanguageModel;
pub use message::Message;
pub use overflow::Overflow;
pub use runner::{Runner, RunnerError};
pub use sampler::Sampler;
pub use session::{Cancel, Event, Request, Session, StopReason, Turn};
pub use template::{ChatTemplate, Rendering};
pub use tokenizer::Tokenizer;
