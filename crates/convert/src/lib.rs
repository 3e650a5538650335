//! Checkpoint (GGUF, safetensors) to a stateful Core ML package.

pub mod dequantize;
mod error;
pub mod source;
pub mod tokenizer;

pub use error::{ConvertError, Result};
pub use source::{Format, Source, Tensor};
pub use tokenizer::{GenerationSettings, TokenizerFiles};
