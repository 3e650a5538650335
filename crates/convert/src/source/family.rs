//! The families of architectures whose settings and tensors are understood here: the list.

use super::config::Config;

/// A family: architectures with the same settings and the same tensors.
#[derive(Debug)]
pub struct Family {
    /// The name, as in error messages and manifests.
    pub name: &'static str,
    /// Values of `general.architecture` in GGUF files.
    pub gguf: &'static [&'static str],
    /// Classes in `architectures` of `config.json`.
    pub classes: &'static [&'static str],
    /// Values of `model_type` in `config.json`, used where there is no class.
    pub model_types: &'static [&'static str],
    /// Whether llama.cpp's converter permutes the rows of query and key projections for this family.
    pub interleaved_in_gguf: bool,
    /// What `config.json` means where it leaves something out.
    pub(super) defaults: Defaults,
    /// The tensors of a model, by Hugging Face name, with their shapes.
    pub tensors: fn(&Config) -> Shapes,
}

/// Tensors by Hugging Face name, with their shapes.
pub type Shapes = Vec<(String, Vec<usize>)>;

/// The defaults of the family's configuration class in Hugging Face's transformers.
#[derive(Debug)]
pub(super) struct Defaults {
    /// Key-value heads; as many as query heads if `None`.
    pub(super) kv_heads: Option<usize>,
    pub(super) norm_eps: f64,
    pub(super) rope_theta: f64,
    pub(super) context_length: usize,
    /// The window where the key is absent; a `null` there means none.
    pub(super) sliding_window: Option<usize>,
}

/// All families.
pub static FAMILIES: &[&Family] = &[&LLAMA, &MISTRAL];

/// Llama 2 and 3, SmolLM2, TinyLlama and others of the same shape; Mistral models in GGUF files.
pub static LLAMA: Family = Family {
    name: "llama",
    gguf: &["llama"],
    classes: &["LlamaForCausalLM"],
    model_types: &["llama"],
    interleaved_in_gguf: true,
    defaults: Defaults {
        kv_heads: None,
        norm_eps: 1e-6,
        rope_theta: 10000.0,
        context_length: 2048,
        sliding_window: None,
    },
    tensors: llama_tensors,
};

/// Mistral, as Hugging Face has it.
pub static MISTRAL: Family = Family {
    name: "mistral",
    gguf: &[],
    classes: &["MistralForCausalLM"],
    model_types: &["mistral"],
    interleaved_in_gguf: true,
    defaults: Defaults {
        kv_heads: Some(8),
        norm_eps: 1e-6,
        rope_theta: 10000.0,
        context_length: 131072,
        sliding_window: Some(4096),
    },
    tensors: llama_tensors,
};

/// What is supported, for error messages.
pub fn supported() -> String {
    let list = |names: Vec<&str>| names.join(", ");
    format!(
        "{} (general.architecture of a GGUF file: {}; architectures of config.json: {})",
        list(FAMILIES.iter().map(|family| family.name).collect()),
        list(FAMILIES.iter().flat_map(|family| family.gguf).copied().collect()),
        list(FAMILIES.iter().flat_map(|family| family.classes).copied().collect()),
    )
}

fn llama_tensors(config: &Config) -> Shapes {
    let (hidden, ffn) = (config.hidden_size, config.ffn_size);
    let (queries, keys) = (config.heads * config.head_dim, config.kv_heads * config.head_dim);
    let mut tensors = vec![("model.embed_tokens.weight".to_owned(), vec![config.vocab_size, hidden])];
    for layer in 0..config.layers {
        let mut add = |part: &str, shape: &[usize]| {
            tensors.push((format!("model.layers.{layer}.{part}"), shape.to_vec()));
        };
        add("input_layernorm.weight", &[hidden]);
        for (part, outputs, inputs, bias) in [
            ("self_attn.q_proj", queries, hidden, config.qkv_bias),
            ("self_attn.k_proj", keys, hidden, config.qkv_bias),
            ("self_attn.v_proj", keys, hidden, config.qkv_bias),
            ("self_attn.o_proj", hidden, queries, config.attention_output_bias),
        ] {
            add(&format!("{part}.weight"), &[outputs, inputs]);
            if bias {
                add(&format!("{part}.bias"), &[outputs]);
            }
        }
        add("post_attention_layernorm.weight", &[hidden]);
        for (part, outputs, inputs) in
            [("mlp.gate_proj", ffn, hidden), ("mlp.up_proj", ffn, hidden), ("mlp.down_proj", hidden, ffn)]
        {
            add(&format!("{part}.weight"), &[outputs, inputs]);
            if config.mlp_bias {
                add(&format!("{part}.bias"), &[outputs]);
            }
        }
    }
    tensors.push(("model.norm.weight".to_owned(), vec![hidden]));
    if !config.tie_embeddings {
        tensors.push(("lm_head.weight".to_owned(), vec![config.vocab_size, hidden]));
    }
    tensors
}
