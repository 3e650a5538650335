//! Checkpoint (GGUF, safetensors) to a stateful Core ML package.

mod ane;
mod arch;
mod block;
mod calibration;
mod check;
mod convert;
pub mod dequantize;
mod error;
mod finite;
mod gpu;
pub mod lint;
mod net;
mod part;
mod profile;
pub mod quantize;
mod sample;
pub mod source;
mod split;
mod staging;
pub mod tokenizer;

pub use calibration::Calibration;
pub use check::{Fidelity, MatrixFidelity};
pub use convert::{Conversion, DECODE, DEFAULT_CONTEXT, DEFAULT_PREFILL, Estimate, Options, PREFILL};
pub use error::{ConvertError, Result};
pub use lint::Profile;
pub use part::Kv;
pub use quantize::{Rule, SCHEMES, STEPS, Scheme, Text, Watch};
pub use source::{Format, Source, Tensor};
pub use split::Split;
pub use tokenizer::{GenerationSettings, TokenizerFiles};
