//! What an architecture is, as far as reading its checkpoints goes. The list of them is [`crate::arch`].

use super::config::Config;
use super::gguf_config::Keys;
use super::json::Object;
pub use crate::arch::FAMILIES;
use crate::error::Result;

/// A family: architectures with the same settings and the same tensors.
#[derive(Debug)]
pub struct Family {
    /// The name, as in error messages and manifests.
    pub name: &'static str,
    /// Models of it, for people.
    pub models: &'static str,
    /// Values of `general.architecture` in GGUF files.
    pub gguf: &'static [&'static str],
    /// Classes in `architectures` of `config.json`.
    pub classes: &'static [&'static str],
    /// Values of `model_type` in `config.json`, used where there is no class.
    pub model_types: &'static [&'static str],
    /// Whether llama.cpp's converter permutes the rows of query and key projections for this family.
    pub interleaved_in_gguf: bool,
    /// Whether the norms of a folder multiply by `1 + weight`. (llama.cpp's converter adds the 1.)
    pub norms_from_one: bool,
    /// Whether a part of a head may be rotated.
    pub partial_rotary: bool,
    /// How layers are put together.
    pub layer: LayerShape,
    /// Tensors that hold several projections, rows below one another.
    pub(crate) fused: &'static [Fused],
    /// What `config.json` means where it leaves something out.
    pub(crate) defaults: Defaults,
    /// What only this family has in its `config.json`.
    pub(crate) read_folder: fn(&mut Config, &Object) -> Result<()>,
    /// What only this family has in its GGUF metadata.
    pub(crate) read_gguf: fn(&mut Config, &Keys<'_>) -> Result<()>,
    /// The tensors of a model, by Hugging Face name, with their shapes.
    pub tensors: fn(&Config) -> Shapes,
}

/// Tensors by Hugging Face name, with their shapes.
pub type Shapes = Vec<(String, Vec<usize>)>;

/// How the layers of an architecture differ.
#[derive(Debug, Clone, Copy)]
pub struct LayerShape {
    /// The norm of what attention reads, by its name in a layer.
    pub before_attention: Option<&'static str>,
    /// The norm of what attention gives.
    pub after_attention: Option<&'static str>,
    /// The norm of what the feed-forward part reads.
    pub before_mlp: Option<&'static str>,
    /// The norm of what the feed-forward part gives.
    pub after_mlp: Option<&'static str>,
    /// The norms of queries and keys.
    pub qk_norm: QkNorm,
    /// The activation of the feed-forward part's gate.
    pub activation: Activation,
}

/// Norms of queries and keys, `self_attn.q_norm` and `self_attn.k_norm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QkNorm {
    /// There are none.
    None,
    /// Of each head by itself; the weights have a head's size.
    Heads,
    /// Of all heads together.
    Whole,
}

/// The activation of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// `x · sigmoid(x)`.
    Silu,
    /// GELU by its approximation with the hyperbolic tangent.
    GeluTanh,
}

impl Activation {
    /// Its names in `config.json`, the usual one first.
    pub(super) fn names(self) -> &'static [&'static str] {
        match self {
            Self::Silu => &["silu", "swish"],
            Self::GeluTanh => &["gelu_pytorch_tanh", "gelu_new"],
        }
    }
}

/// A tensor of a layer that holds several projections.
#[derive(Debug)]
pub(crate) struct Fused {
    /// Its name in GGUF files.
    pub(crate) gguf: &'static str,
    /// Its name in Hugging Face folders.
    pub(crate) name: &'static str,
    /// The projections, in order.
    pub(crate) parts: &'static [&'static str],
}

/// The defaults of the family's configuration class in Hugging Face's transformers.
#[derive(Debug)]
pub(crate) struct Defaults {
    pub(crate) vocab_size: Option<usize>,
    pub(crate) heads: Option<usize>,
    /// Key-value heads; as many as query heads if `None`.
    pub(crate) kv_heads: Option<usize>,
    /// The size of heads; the hidden size divided among them if `None`.
    pub(crate) head_dim: Option<usize>,
    pub(crate) norm_eps: f64,
    pub(crate) rope_theta: f64,
    pub(crate) context_length: usize,
    /// The window where the key is absent; a `null` there means none.
    pub(crate) sliding_window: Option<usize>,
    pub(crate) tie_embeddings: bool,
}

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

/// Rows of a projection, by its name in a layer.
pub(super) fn projection_rows(config: &Config, part: &str) -> usize {
    match part {
        "self_attn.q_proj" => config.heads * config.head_dim,
        "self_attn.k_proj" | "self_attn.v_proj" => config.kv_heads * config.head_dim,
        "mlp.gate_proj" | "mlp.up_proj" => config.ffn_size,
        _ => config.hidden_size,
    }
}
