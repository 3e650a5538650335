//! Checkpoint (GGUF, safetensors) to a stateful Core ML package.
