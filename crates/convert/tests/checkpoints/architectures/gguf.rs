//! Writes a Hugging Face folder as llama.cpp's converter would: its names, its metadata, and what it does to weights.

use std::f64::consts::TAU;
use std::path::Path;

use half::f16;
use safetensors::SafeTensors;
use serde_json::Value;

use crate::support::GgufBuilder;

/// The file. Weights are half floats, norms single ones.
pub(super) fn of_folder(folder: &Path) -> GgufBuilder {
    let config: Value = serde_json::from_slice(&std::fs::read(folder.join("config.json")).unwrap()).unwrap();
    let model_type = config["model_type"].as_str().unwrap();
    let arch = match model_type {
        "mistral" => "llama",
        "gemma3_text" => "gemma3",
        other => other,
    };
    let (mut file, head_dim) = settings(&config, arch);
    let bytes = std::fs::read(folder.join("model.safetensors")).unwrap();
    let stored = SafeTensors::deserialize(&bytes).unwrap();
    for (name, tensor) in stored.tensors() {
        let values: Vec<f32> = tensor.data().as_chunks().0.iter().map(|b| f16::from_le_bytes(*b).to_f32()).collect();
        let (shape, name) = (tensor.shape(), gguf_name(&name, arch));
        let values = match () {
            () if arch.starts_with("gemma") && name.ends_with("norm.weight") => {
                values.iter().map(|v| v + 1.0).collect()
            }
            () if matches!(arch, "llama" | "smollm3") && (name.contains("attn_q.") || name.contains("attn_k.")) => {
                permuted(&values, shape, head_dim)
            }
            () => values,
        };
        file = match shape {
            [_, _] => {
                let halves = values.iter().flat_map(|v| f16::from_f32(*v).to_le_bytes()).collect();
                file.tensor(&name, shape, 1, halves)
            }
            _ => file.tensor_f32(&name, shape, &values),
        };
    }
    file
}

fn settings(config: &Value, arch: &str) -> (GgufBuilder, usize) {
    let number = |key: &str| config[key].as_f64();
    let count = |key: &str| config[key].as_u64().unwrap_or_else(|| panic!("{key}")) as u32;
    let heads = count("num_attention_heads");
    let head_dim = config["head_dim"].as_u64().map_or(count("hidden_size") / heads, |size| size as u32);
    let rotated = (f64::from(head_dim) * number("partial_rotary_factor").unwrap_or(1.0)) as u32;
    let key = |name: &str| format!("{arch}.{name}");
    let theta = number("rope_theta").unwrap_or(10000.0);
    let mut file = GgufBuilder::new(3)
        .str("general.architecture", arch)
        .u32(&key("block_count"), count("num_hidden_layers"))
        .u32(&key("context_length"), count("max_position_embeddings"))
        .u32(&key("embedding_length"), count("hidden_size"))
        .u32(&key("feed_forward_length"), count("intermediate_size"))
        .u32(&key("attention.head_count"), heads)
        .u32(&key("attention.head_count_kv"), count("num_key_value_heads"))
        .u32(&key("attention.key_length"), head_dim)
        .u32(&key("attention.value_length"), head_dim)
        .u32(&key("rope.dimension_count"), rotated)
        .f32(&key("rope.freq_base"), theta as f32)
        .f32(&key("attention.layer_norm_rms_epsilon"), number("rms_norm_eps").unwrap() as f32);
    if let Some(window) = config["sliding_window"].as_u64() {
        file = file.u32(&key("attention.sliding_window"), window as u32);
    }
    if let (Some(cap), Some(last)) = (number("attn_logit_softcapping"), number("final_logit_softcapping")) {
        file = file.f32(&key("attn_logit_softcapping"), cap as f32).f32(&key("final_logit_softcapping"), last as f32);
    }
    let scaling = &config["rope_scaling"];
    file = match scaling["rope_type"].as_str().or(scaling["type"].as_str()) {
        None => file,
        Some("linear") => {
            let factor = scaling["factor"].as_f64().unwrap() as f32;
            file.str(&key("rope.scaling.type"), "linear").f32(&key("rope.scaling.factor"), factor)
        }
        Some("llama3") => {
            let factors = llama3_factors(scaling, theta, head_dim);
            file.tensor_f32("rope_freqs.weight", &[factors.len()], &factors)
        }
        Some("longrope") => {
            let original = f64::from(count("original_max_position_embeddings"));
            let scale = f64::from(count("max_position_embeddings")) / original;
            let magnitude = (1.0 + scale.ln() / original.ln()).sqrt();
            for (which, name) in [("short_factor", "short"), ("long_factor", "long")] {
                let list = scaling[which].as_array().unwrap();
                let list: Vec<f32> = list.iter().map(|v| v.as_f64().unwrap() as f32).collect();
                file = file.tensor_f32(&format!("rope_factors_{name}.weight"), &[list.len()], &list);
            }
            file.u32(&key("rope.scaling.original_context_length"), original as u32)
                .f32(&key("rope.scaling.attn_factor"), magnitude as f32)
        }
        Some(other) => panic!("{other}"),
    };
    (file, head_dim as usize)
}

/// What plain frequencies are divided by.
fn llama3_factors(scaling: &Value, theta: f64, head_dim: u32) -> Vec<f32> {
    let number = |key: &str| scaling[key].as_f64().unwrap();
    let (factor, original) = (number("factor"), number("original_max_position_embeddings"));
    let (low, high) = (number("low_freq_factor"), number("high_freq_factor"));
    let one = |i: u32| {
        let wavelength = TAU * theta.powf(f64::from(2 * i) / f64::from(head_dim));
        if wavelength < original / high {
            1.0
        } else if wavelength > original / low {
            factor
        } else {
            let smooth = (original / wavelength - low) / (high - low);
            1.0 / ((1.0 - smooth) / factor + smooth)
        }
    };
    (0..head_dim / 2).map(|i| one(i) as f32).collect()
}

/// Rows as the file has them: row `j` of a head's half `p` goes to `2j + p`.
fn permuted(values: &[f32], shape: &[usize], head_dim: usize) -> Vec<f32> {
    let columns = shape.get(1).copied().unwrap_or(1);
    let rows: Vec<&[f32]> = values.chunks(columns).collect();
    let heads = rows.chunks(head_dim);
    let interleaved = heads.flat_map(|head| (0..head_dim / 2).flat_map(|j| [head[j], head[head_dim / 2 + j]]));
    interleaved.flatten().copied().collect()
}

fn gguf_name(name: &str, arch: &str) -> String {
    // Behind attention and the feed-forward part, where there are such norms.
    let (middle, before_mlp) = match arch {
        "gemma2" | "gemma3" => ("post_attention_norm", "ffn_norm"),
        "olmo2" => ("post_attention_norm", "-"),
        _ => ("ffn_norm", "-"),
    };
    let mut name = name.replace("model.layers.", "blk.");
    for (from, to) in [
        ("model.embed_tokens", "token_embd"),
        ("model.norm", "output_norm"),
        ("lm_head", "output"),
        ("input_layernorm", "attn_norm"),
        ("post_attention_layernorm", middle),
        ("pre_feedforward_layernorm", before_mlp),
        ("post_feedforward_layernorm", "post_ffw_norm"),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.o_proj", "attn_output"),
        ("self_attn.qkv_proj", "attn_qkv"),
        ("self_attn.q_norm", "attn_q_norm"),
        ("self_attn.k_norm", "attn_k_norm"),
        ("mlp.gate_up_proj", "ffn_up"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
    ] {
        name = name.replace(from, to);
    }
    name
}
