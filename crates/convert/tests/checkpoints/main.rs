//! Checkpoints of all kinds, right and wrong, through the public face of the crate.

mod architectures;
mod gguf;
mod hostile;
mod lora;
mod peculiar;
mod smollm2;
mod source;
mod stop;
mod support;
mod tokenizer;
