//! Settings from the metadata of a GGUF file.

use super::config::{Config, Rope, RopeScaling};
use super::family::{self, FAMILIES, Family};
use super::gguf::Gguf;
use crate::error::{ConvertError, Result};
use crate::tokenizer::GenerationSettings;

/// More than half of any head; a longer list is refused later by its length.
const MAX_FACTORS: usize = 1 << 20;

/// Reads the settings of any supported family.
pub(super) fn read(gguf: &Gguf, generation: &GenerationSettings) -> Result<Config> {
    let (family, prefix) = family(gguf)?;
    let (path, metadata) = (gguf.path(), gguf.metadata());
    let key = |name: &str| format!("{prefix}.{name}");
    let count = |name: &str| -> Result<Option<usize>> { Ok(metadata.u32(&key(name))?.map(|v| v as usize)) };
    let required = |name: &str| -> Result<usize> {
        count(name)?
            .ok_or_else(|| ConvertError::setting(path, &key(name), "absent; the model cannot be understood without it"))
    };
    let unsupported = |feature: String, remedy: &str| ConvertError::UnsupportedFeature {
        path: path.to_owned(),
        feature,
        remedy: remedy.to_owned(),
    };
    if let Some(experts @ 1..) = count("expert_count")? {
        return Err(unsupported(format!("a mixture of {experts} experts"), "only dense models are converted"));
    }

    let hidden_size = required("embedding_length")?;
    let heads = required("attention.head_count")?;
    let head_dim = match count("attention.key_length")? {
        Some(head_dim) => head_dim,
        None => super::even_split(path, &key("embedding_length"), hidden_size, heads)?,
    };
    if let Some(value_dim) = count("attention.value_length")?
        && value_dim != head_dim
    {
        return Err(unsupported(
            format!("keys of width {head_dim} with values of width {value_dim}"),
            "they must be equal",
        ));
    }
    let rotated = count("rope.dimension_count")?.unwrap_or(head_dim);
    if rotated != head_dim {
        return Err(unsupported(
            format!("rotating {rotated} of {head_dim} dimensions"),
            "this family rotates whole heads",
        ));
    }
    let has = |name: &str| gguf.tensors().get(name).is_some();
    let embedding = gguf.tensors().get("token_embd.weight").map(|info| info.shape.as_slice());
    let Some(&[vocab_size, _]) = embedding else {
        let problem = format!("the embedding, token_embd.weight, is absent or not a matrix ({embedding:?})");
        return Err(ConvertError::Tensors { path: path.to_owned(), problems: vec![problem] });
    };
    let epsilon = "attention.layer_norm_rms_epsilon";
    Ok(Config {
        family,
        vocab_size,
        hidden_size,
        layers: required("block_count")?,
        heads,
        kv_heads: count("attention.head_count_kv")?.unwrap_or(heads),
        head_dim,
        ffn_size: required("feed_forward_length")?,
        norm_eps: metadata
            .f64(&key(epsilon))?
            .ok_or_else(|| ConvertError::setting(path, &key(epsilon), "absent; expected a small number"))?,
        rope: rope(gguf, prefix, head_dim)?,
        context_length: required("context_length")?,
        tie_embeddings: !has("output.weight"),
        qkv_bias: has("blk.0.attn_q.bias"),
        attention_output_bias: has("blk.0.attn_output.bias"),
        mlp_bias: has("blk.0.ffn_up.bias"),
        sliding_window: count("attention.sliding_window")?.filter(|window| *window > 0),
        bos: generation.bos,
        eos: generation.eos.clone(),
    })
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

fn rope(gguf: &Gguf, prefix: &str, dimensions: usize) -> Result<Rope> {
    let metadata = gguf.metadata();
    let number = |name: &str| metadata.f64(&format!("{prefix}.{name}"));
    // Frequencies that the model came with, as a tensor of divisors: Llama 3's scaling.
    let listed = match gguf.tensors().get("rope_freqs.weight") {
        None => None,
        Some(info) => {
            let (kind, bytes) = info.data.as_ref().ok_or_else(|| super::undecodable(gguf.path(), info))?;
            let mut factors = vec![0.0; info.shape.iter().product::<usize>().min(MAX_FACTORS)];
            kind.decode(bytes, 0..factors.len(), &mut factors);
            Some(factors)
        }
    };
    if gguf.tensors().get("rope_factors_long.weight").is_some() {
        return Err(super::unsupported_scaling(gguf.path(), "longrope"));
    }
    let linear = match metadata.str(&format!("{prefix}.rope.scaling.type"))? {
        Some("linear") => number("rope.scaling.factor")?,
        None => number("rope.scale_linear")?,
        Some("none") => None,
        Some(other) => return Err(super::unsupported_scaling(gguf.path(), other)),
    };
    let scaling = match (listed, linear.filter(|factor| *factor != 1.0)) {
        (None, None) => RopeScaling::None,
        (Some(factors), None) if factors.iter().all(|factor| *factor == 1.0) => RopeScaling::None,
        (Some(factors), None) => RopeScaling::Factors(factors),
        (None, Some(factor)) => RopeScaling::Linear { factor },
        (Some(_), Some(_)) => {
            return Err(super::unsupported_scaling(gguf.path(), "linear together with rope_freqs.weight"));
        }
    };
    Ok(Rope { theta: number("rope.freq_base")?.unwrap_or(10000.0), dimensions, scaling })
}
