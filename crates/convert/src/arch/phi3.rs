//! Phi-3, Phi-3.5 and Phi-4-mini: a Llama whose projections are stored together, with LongRoPE and, in Phi-4-mini, heads
//! that are rotated in part.

use super::llama::LLAMA;
use crate::source::family::{Defaults, Family, Fused};

/// Phi-3 and Phi-4.
pub(super) static PHI3: Family = Family {
    name: "phi3",
    models: "Phi-3, Phi-3.5-mini, Phi-4, Phi-4-mini",
    gguf: &["phi3"],
    classes: &["Phi3ForCausalLM"],
    model_types: &["phi3"],
    interleaved_in_gguf: false,
    partial_rotary: true,
    fused: &[
        Fused {
            gguf: "attn_qkv",
            name: "self_attn.qkv_proj",
            parts: &["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
        },
        Fused { gguf: "ffn_up", name: "mlp.gate_up_proj", parts: &["mlp.gate_proj", "mlp.up_proj"] },
    ],
    defaults: Defaults { norm_eps: 1e-5, context_length: 4096, ..LLAMA.defaults },
    read_folder: |_, _| Ok(()),
    ..LLAMA
};
