//! The hyper-parameters of a model, whatever file they came from.

use std::ops::RangeInclusive;
use std::path::Path;

use super::family::Family;
pub use super::rope::{Rope, RopeScaling};
use crate::error::{ConvertError, Result};

/// The hyper-parameters of a decoder-only transformer with rotary positions and gated feed-forward layers.
#[derive(Debug, Clone)]
pub struct Config {
    /// The family of architectures that the model belongs to.
    pub family: &'static Family,
    /// Rows of the embedding.
    pub vocab_size: usize,
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Transformer layers.
    pub layers: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; divides `heads`.
    pub kv_heads: usize,
    /// Width of a head; even.
    pub head_dim: usize,
    /// Width of the feed-forward layers.
    pub ffn_size: usize,
    /// The epsilon of the RMS norms.
    pub norm_eps: f64,
    /// Rotary positions.
    pub rope: Rope,
    /// Rotary positions of the layers that look back no further than the window, where they are others.
    pub local_rope: Option<Rope>,
    /// The layers that have rotary positions. The others know of order by the mask alone.
    pub rotary_layers: Layers,
    /// The context length that the model was made for, in tokens.
    pub context_length: usize,
    /// Whether the output projection is the embedding.
    pub tie_embeddings: bool,
    /// Whether the query, key and value projections have biases.
    pub qkv_bias: bool,
    /// Whether the attention's output projection has a bias.
    pub attention_output_bias: bool,
    /// Whether the feed-forward projections have biases.
    pub mlp_bias: bool,
    /// How many positions back the attention of `sliding_layers` looks, if not all the way.
    pub sliding_window: Option<usize>,
    /// The layers that look back no further than the window.
    pub sliding_layers: Layers,
    /// What the products of queries and keys are multiplied by.
    pub attention_scale: f64,
    /// If set, scores are bent to stay below this: `cap · tanh(score / cap)`.
    pub attention_softcap: Option<f64>,
    /// The same for logits.
    pub logit_softcap: Option<f64>,
    /// What embeddings are multiplied by.
    pub embedding_scale: f64,
    /// What the sum over the layers is kept multiplied by, a power of two. Only where every layer reads and adds through a
    /// norm: then the result is the same, and a sum that half floats could not hold can be held.
    pub residual_scale: f64,
    /// The token that begins a text, if there is one.
    pub bos: Option<u32>,
    /// The tokens that end generation.
    pub eos: Vec<u32>,
}

/// Some of the layers of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layers {
    /// None of them.
    None,
    /// All of them.
    All,
    /// Those from this one on.
    From(usize),
    /// All but the last of each group of this many.
    AllButEvery(usize),
    /// Those whose place in the list says so.
    Listed(Vec<bool>),
}

impl Layers {
    /// Whether layer `layer`, counted from 0, is one of them.
    pub fn contains(&self, layer: usize) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::From(first) => layer >= *first,
            Self::AllButEvery(group) => !(layer + 1).is_multiple_of(*group),
            Self::Listed(listed) => listed.get(layer) == Some(&true),
        }
    }

    fn check(&self, path: &Path, key: &str, layers: usize) -> Result<()> {
        let problem = match self {
            Self::Listed(listed) if listed.len() != layers => {
                format!("{} layers; expected {layers}, the number of layers", listed.len())
            }
            Self::AllButEvery(0) => "groups of 0 layers; expected 1 or more".to_owned(),
            _ => return Ok(()),
        };
        Err(ConvertError::setting(path, key, problem))
    }
}

/// Refuses what lies outside of bounds that every model of today keeps by far, and half or single floats do not hold.
pub(crate) fn within(path: &Path, name: &str, value: f64, bounds: RangeInclusive<f64>) -> Result<()> {
    if bounds.contains(&value) {
        return Ok(());
    }
    let problem = format!("{value:?}; expected a number from {:?} to {:?}", bounds.start(), bounds.end());
    Err(ConvertError::setting(path, name, problem))
}

/// What scales, divides or caps something.
pub(crate) const FACTORS: RangeInclusive<f64> = 1e-6..=1e6;
/// What is added to a mean of squares.
const EPSILONS: RangeInclusive<f64> = 1e-30..=0.1;

/// Bounds that every model of today keeps by far; they make later products free of overflow.
const MAX_WIDTH: usize = 1 << 20;
const MAX_VOCAB: usize = 1 << 24;
const MAX_LAYERS: usize = 1 << 12;
pub(super) const MAX_CONTEXT: usize = 1 << 28;

impl Config {
    /// Refuses numbers that cannot be a model's.
    pub(super) fn check(&self, path: &Path) -> Result<()> {
        let counted = |name: &str, value: usize, limit: usize| match value {
            1.. if value <= limit => Ok(()),
            _ => Err(ConvertError::setting(path, name, format!("{value}; expected 1 to {limit}"))),
        };
        counted("vocabulary size", self.vocab_size, MAX_VOCAB)?;
        counted("hidden size", self.hidden_size, MAX_WIDTH)?;
        counted("number of layers", self.layers, MAX_LAYERS)?;
        counted("number of heads", self.heads, MAX_WIDTH)?;
        counted("number of key-value heads", self.kv_heads, self.heads)?;
        counted("head size", self.head_dim, MAX_WIDTH)?;
        counted("feed-forward size", self.ffn_size, MAX_WIDTH)?;
        counted("context length", self.context_length, MAX_CONTEXT)?;
        if let Some(window) = self.sliding_window {
            counted("sliding window", window, MAX_CONTEXT)?;
        }
        if !self.heads.is_multiple_of(self.kv_heads) {
            let problem = format!("{} does not divide the number of heads, {}", self.kv_heads, self.heads);
            return Err(ConvertError::setting(path, "number of key-value heads", problem));
        }
        if self.heads.saturating_mul(self.head_dim) > MAX_WIDTH {
            return Err(ConvertError::setting(path, "number of heads", "heads times head size is too large"));
        }
        if !self.head_dim.is_multiple_of(2) {
            return Err(ConvertError::setting(path, "head size", "odd; rotary positions need pairs"));
        }
        self.sliding_layers.check(path, "layer_types", self.layers)?;
        self.rotary_layers.check(path, "no_rope_layers", self.layers)?;
        within(path, "rms_norm_eps", self.norm_eps, EPSILONS)?;
        within(path, "attention scale", self.attention_scale, FACTORS)?;
        within(path, "embedding scale", self.embedding_scale, FACTORS)?;
        within(path, "residual scale", self.residual_scale, FACTORS)?;
        let caps =
            [("attn_logit_softcapping", self.attention_softcap), ("final_logit_softcapping", self.logit_softcap)];
        caps.iter().try_for_each(|(name, cap)| cap.map_or(Ok(()), |cap| within(path, name, cap, FACTORS)))?;
        self.local_rope.iter().try_for_each(|rope| rope.check(path, self.head_dim, "rope_local_base_freq"))?;
        self.rope.check(path, self.head_dim, "rope_theta")
    }

    /// Whether the projection of that name (`…self_attn.q_proj`) has a bias.
    pub fn has_bias(&self, projection: &str) -> bool {
        match projection.rsplit('.').next() {
            Some("q_proj" | "k_proj" | "v_proj") => self.qkv_bias,
            Some("o_proj") => self.attention_output_bias,
            Some("gate_proj" | "up_proj" | "down_proj") => self.mlp_bias,
            _ => false,
        }
    }

    /// How many positions back layer `layer` looks, if not all the way.
    pub fn window(&self, layer: usize) -> Option<usize> {
        self.sliding_window.filter(|_| self.sliding_layers.contains(layer))
    }
}
