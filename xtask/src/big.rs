//! A checkpoint of the shape of a model of a billion weights, for measuring conversions: weights are drawn, and say nothing.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Result, ensure};
use half::bf16;
use serde_json::json;

/// That of Llama 3.2 1B.
const HIDDEN: usize = 2048;
const FFN: usize = 8192;
const LAYERS: usize = 16;
const HEADS: usize = 32;
const KV_HEADS: usize = 8;
const HEAD: usize = 64;
const VOCABULARY: usize = 128_256;
/// Bytes of a file of weights, about.
const SHARD: usize = 1 << 30;
/// Drawn weights, which every tensor begins elsewhere in.
const DRAWN: usize = 1 << 22;

/// Writes the checkpoint, 2.5 GB in half the width of single floats (bf16), into `folder`, which must not be there.
///
/// # Errors
/// If the disk refuses.
pub fn write(folder: &Path) -> Result<()> {
    ensure!(!folder.exists(), "{} is there already", folder.display());
    fs::create_dir_all(folder)?;
    let config = json!({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": FFN,
        "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "head_dim": HEAD,
        "vocab_size": VOCABULARY, "max_position_embeddings": 131_072, "rms_norm_eps": 1e-5, "rope_theta": 500_000.0,
        "hidden_act": "silu", "tie_word_embeddings": true, "torch_dtype": "bfloat16",
        "rope_scaling": { "rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192 },
    });
    fs::write(folder.join("config.json"), config.to_string())?;
    let drawn = drawn();
    let shards = shards();
    let mut index = BTreeMap::new();
    for (i, shard) in shards.iter().enumerate() {
        let file = format!("model-{:05}-of-{:05}.safetensors", i + 1, shards.len());
        shard.iter().for_each(|(name, _)| drop(index.insert(name.clone(), file.clone())));
        write_shard(&folder.join(file), shard, &drawn)?;
    }
    let index = json!({ "metadata": {}, "weight_map": index });
    fs::write(folder.join("model.safetensors.index.json"), index.to_string())?;
    Ok(())
}

type Tensors = Vec<(String, Vec<usize>)>;

fn shards() -> Vec<Tensors> {
    let mut all: Tensors = vec![("model.embed_tokens.weight".into(), vec![VOCABULARY, HIDDEN])];
    for layer in 0..LAYERS {
        for (name, rows, columns) in [
            ("self_attn.q_proj", HEADS * HEAD, HIDDEN),
            ("self_attn.k_proj", KV_HEADS * HEAD, HIDDEN),
            ("self_attn.v_proj", KV_HEADS * HEAD, HIDDEN),
            ("self_attn.o_proj", HIDDEN, HEADS * HEAD),
            ("mlp.gate_proj", FFN, HIDDEN),
            ("mlp.up_proj", FFN, HIDDEN),
            ("mlp.down_proj", HIDDEN, FFN),
        ] {
            all.push((format!("model.layers.{layer}.{name}.weight"), vec![rows, columns]));
        }
        for norm in ["input_layernorm", "post_attention_layernorm"] {
            all.push((format!("model.layers.{layer}.{norm}.weight"), vec![HIDDEN]));
        }
    }
    all.push(("model.norm.weight".into(), vec![HIDDEN]));
    let mut shards: Vec<Tensors> = vec![Vec::new()];
    let mut held = 0;
    for tensor in all {
        let bytes = 2 * tensor.1.iter().product::<usize>();
        if held > 0 && held + bytes > SHARD {
            shards.push(Vec::new());
            held = 0;
        }
        held += bytes;
        shards.last_mut().expect("one is there").push(tensor);
    }
    shards
}

/// About normal, of a deviation as such models have.
fn drawn() -> Vec<u8> {
    let mut x = 0x2545_f491_4f6c_dd1du64;
    let mut bytes = Vec::with_capacity(2 * DRAWN);
    for _ in 0..DRAWN {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        let sum: i64 = (0..4).map(|i| (x >> (16 * i) & 0xffff) as i64 - 0x8000).sum();
        bytes.extend(bf16::from_f32(0.02 * sum as f32 / 37_837.0).to_le_bytes());
    }
    bytes
}

fn write_shard(path: &Path, tensors: &Tensors, drawn: &[u8]) -> Result<()> {
    let (mut header, mut at) = (serde_json::Map::new(), 0);
    for (name, shape) in tensors {
        let end = at + 2 * shape.iter().product::<usize>();
        header.insert(name.clone(), json!({ "dtype": "BF16", "shape": shape, "data_offsets": [at, end] }));
        at = end;
    }
    let mut header = serde_json::Value::Object(header).to_string();
    header.push_str(&" ".repeat(header.len().next_multiple_of(8) - header.len()));
    let mut file = BufWriter::new(fs::File::create(path)?);
    file.write_all(&(header.len() as u64).to_le_bytes())?;
    file.write_all(header.as_bytes())?;
    for (i, (name, shape)) in tensors.iter().enumerate() {
        let mut left = 2 * shape.iter().product::<usize>();
        if name.contains("norm") {
            (0..left / 2).try_for_each(|_| file.write_all(&bf16::ONE.to_le_bytes()))?;
            continue;
        }
        let mut start = ((i * 7919 * 64) % drawn.len()) & !1;
        while left > 0 {
            let n = left.min(drawn.len() - start);
            file.write_all(&drawn[start..start + n])?;
            left -= n;
            start = 0;
        }
    }
    file.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_billion_weights_in_several_files() {
        let shards = shards();
        let weights: usize = shards.iter().flatten().map(|(_, shape)| shape.iter().product::<usize>()).sum();
        assert!((1_230_000_000..1_240_000_000).contains(&weights) && shards.len() > 2, "{weights}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("one.safetensors");
        let tensors = vec![("norm".to_owned(), vec![8]), ("w".to_owned(), vec![16, 8])];
        write_shard(&path, &tensors, &drawn()).unwrap();
        let bytes = fs::read(path).unwrap();
        let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        assert_eq!(file.tensor("w").unwrap().shape(), [16, 8]);
    }
}
