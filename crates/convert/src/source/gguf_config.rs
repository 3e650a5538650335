//! Settings from the metadata of a GGUF file.

use super::config::{Config, Layers, Rope, RopeScaling};
use super::family::{self, FAMILIES, Family};
use super::gguf::{Gguf, TensorInfo, Value};
use crate::error::{ConvertError, Result};
use crate::tokenizer::GenerationSettings;

/// More than half of any head; a longer list is refused later by its length.
const MAX_FACTORS: usize = 1 << 20;

/// The metadata of one architecture.
pub(crate) struct Keys<'g> {
    gguf: &'g Gguf,
    prefix: &'g str,
}

impl Keys<'_> {
    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.prefix)
    }

    /// The count at a key of the architecture, if it is there.
    pub(crate) fn count(&self, name: &str) -> Result<Option<usize>> {
        Ok(self.gguf.metadata().u32(&self.key(name))?.map(|v| v as usize))
    }

    /// The number at a key of the architecture, if it is there.
    pub(crate) fn number(&self, name: &str) -> Result<Option<f64>> {
        self.gguf.metadata().f64(&self.key(name))
    }

    fn required<T>(&self, name: &str, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| self.wrong(name, "absent; the model cannot be understood without it"))
    }

    fn wrong(&self, name: &str, problem: &str) -> ConvertError {
        ConvertError::setting(self.gguf.path(), &self.key(name), problem)
    }

    /// The error for a setting that is not done.
    pub(crate) fn unsupported(&self, feature: String, remedy: &str) -> ConvertError {
        ConvertError::UnsupportedFeature { path: self.gguf.path().to_owned(), feature, remedy: remedy.to_owned() }
    }

    /// The layers that look back no further than the window: each by itself, or all but the last of a group of so many.
    pub(crate) fn sliding_layers(&self) -> Result<Option<Layers>> {
        let name = "attention.sliding_window_pattern";
        let Some(Value::Array(list)) = self.gguf.metadata().get(&self.key(name)) else {
            return Ok(self.count(name)?.map(Layers::AllButEvery));
        };
        let truth = |value: Value| match value {
            Value::Bool(sliding) => Some(sliding),
            value => value.as_u64().map(|n| n != 0),
        };
        let listed: Option<Vec<bool>> = list.iter().map(truth).collect();
        listed.map(|listed| Some(Layers::Listed(listed))).ok_or_else(|| self.wrong(name, "expected truth values"))
    }
}

/// Reads the settings of any supported family.
pub(super) fn read(gguf: &Gguf, generation: &GenerationSettings) -> Result<Config> {
    let (family, prefix) = family(gguf)?;
    let keys = Keys { gguf, prefix };
    let count = |name: &str| keys.count(name);
    let required = |name: &str| keys.required(name, keys.count(name)?);
    if let Some(experts @ 1..) = count("expert_count")? {
        return Err(keys.unsupported(format!("a mixture of {experts} experts"), "only dense models are converted"));
    }

    let hidden_size = required("embedding_length")?;
    let heads = required("attention.head_count")?;
    let head_dim = match count("attention.key_length")? {
        Some(head_dim) => head_dim,
        None => super::even_split(gguf.path(), &keys.key("embedding_length"), hidden_size, heads)?,
    };
    if let Some(value_dim) = count("attention.value_length")?
        && value_dim != head_dim
    {
        let feature = format!("keys of width {head_dim} with values of width {value_dim}");
        return Err(keys.unsupported(feature, "they must be equal"));
    }
    let rotated = count("rope.dimension_count")?.unwrap_or(head_dim);
    if rotated != head_dim && !family.partial_rotary {
        let feature = format!("rotating {rotated} of {head_dim} dimensions");
        return Err(keys.unsupported(feature, "this family rotates whole heads"));
    }
    let has = |name: &str| gguf.tensors().get(name).is_some();
    let embedding = gguf.tensors().get("token_embd.weight").map(|info| info.shape.as_slice());
    let Some(&[vocab_size, _]) = embedding else {
        let found =
            embedding.map_or_else(|| "is absent".into(), |shape| format!("is no matrix: its shape is {shape:?}"));
        let problem = format!("the embedding, token_embd.weight, {found}");
        return Err(ConvertError::Tensors { path: gguf.path().to_owned(), problems: vec![problem] });
    };
    let epsilon = "attention.layer_norm_rms_epsilon";
    let mut config = Config {
        family,
        vocab_size,
        hidden_size,
        layers: required("block_count")?,
        heads,
        kv_heads: count("attention.head_count_kv")?.unwrap_or(heads),
        head_dim,
        ffn_size: required("feed_forward_length")?,
        norm_eps: keys.number(epsilon)?.ok_or_else(|| keys.wrong(epsilon, "absent; expected a small number"))?,
        rope: rope(&keys, rotated)?,
        local_rope: None,
        rotary_layers: Layers::All,
        context_length: required("context_length")?,
        tie_embeddings: !has("output.weight"),
        qkv_bias: has("blk.0.attn_q.bias"),
        attention_output_bias: has("blk.0.attn_output.bias"),
        mlp_bias: has("blk.0.ffn_up.bias"),
        sliding_window: count("attention.sliding_window")?.filter(|window| *window > 0),
        sliding_layers: Layers::All,
        attention_scale: (head_dim as f64).sqrt().recip(),
        attention_softcap: None,
        logit_softcap: None,
        embedding_scale: 1.0,
        residual_scale: 1.0,
        bos: generation.bos,
        eos: generation.eos.clone(),
    };
    (family.read_gguf)(&mut config, &keys)?;
    Ok(config)
}

fn family(gguf: &Gguf) -> Result<(&'static Family, &'static str)> {
    let architecture = gguf.metadata().str("general.architecture")?.unwrap_or("(none named)");
    let found = FAMILIES.iter().copied().find_map(|family| {
        let name = family.gguf.iter().copied().find(|name| *name == architecture)?;
        Some((family, name))
    });
    found.ok_or_else(|| ConvertError::UnsupportedArchitecture {
        path: gguf.path().to_owned(),
        found: architecture.to_owned(),
        supported: family::supported(),
    })
}

fn rope(keys: &Keys<'_>, dimensions: usize) -> Result<Rope> {
    let (gguf, path) = (keys.gguf, keys.gguf.path());
    // Frequencies that the model came with, as tensors of divisors: Llama 3's scaling, and LongRoPE.
    let listed = |name: &str| gguf.tensors().get(name).map(|info| factors(gguf, info)).transpose();
    let (fixed, short, long) =
        (listed("rope_freqs.weight")?, listed("rope_factors_short.weight")?, listed("rope_factors_long.weight")?);
    let linear = match gguf.metadata().str(&keys.key("rope.scaling.type"))? {
        Some("linear") => keys.number("rope.scaling.factor")?,
        None => keys.number("rope.scale_linear")?,
        Some("none") => None,
        Some("longrope") if long.is_some() => None,
        Some(other) => return Err(super::unsupported_scaling(path, other)),
    };
    let linear = linear.filter(|factor| *factor != 1.0);
    let scaling = match (fixed, short, long) {
        (None, Some(short), Some(long)) if linear.is_none() => {
            let original = "rope.scaling.original_context_length";
            RopeScaling::Long {
                short,
                long,
                original_context: keys.required(original, keys.count(original)?)?,
                magnitude: keys.number("rope.scaling.attn_factor")?.unwrap_or(1.0),
            }
        }
        (None, None, None) => linear.map_or(RopeScaling::None, |factor| RopeScaling::Linear { factor }),
        (Some(factors), None, None) if linear.is_none() => match factors.iter().all(|factor| *factor == 1.0) {
            true => RopeScaling::None,
            false => RopeScaling::Factors(factors),
        },
        _ => return Err(super::unsupported_scaling(path, "several at once")),
    };
    Ok(Rope { theta: keys.number("rope.freq_base")?.unwrap_or(10000.0), dimensions, scaling })
}

fn factors(gguf: &Gguf, info: &TensorInfo) -> Result<Vec<f32>> {
    let (kind, bytes) = info.data.as_ref().ok_or_else(|| super::undecodable(gguf.path(), info))?;
    let mut factors = vec![0.0; info.shape.iter().product::<usize>().min(MAX_FACTORS)];
    kind.decode(bytes, 0..factors.len(), &mut factors);
    Ok(factors)
}
