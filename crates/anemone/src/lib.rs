//! A language model that keeps its conversation warm: model, tokenizer, chat template, sampler, session.

mod detokenizer;
mod error;
mod generation;
mod message;
mod sampler;
mod template;
#[cfg(test)]
mod testing;
mod tokenizer;

pub use detokenizer::Detokenizer;
pub use error::{Error, Result};
pub use generation::Generation;
pub use message::Message;
pub use sampler::Sampler;
pub use template::{ChatTemplate, Rendering};
pub use tokenizer::Tokenizer;
