//! The unified view: one model as a GGUF file and as a Hugging Face folder.

use std::path::Path;

use anemone_convert::source::config::RopeScaling;
use anemone_convert::source::gguf::Gguf;
use anemone_convert::{ConvertError, Format, Source};
use half::{bf16, f16};
use safetensors::{Dtype, tensor::TensorView};
use serde_json::json;

use crate::support::{GgufBuilder, TinyLlama, fixtures};

type Encoded = (String, Vec<usize>, Dtype, Vec<u8>);

fn encoded(model: &TinyLlama, dtype: Dtype) -> Vec<Encoded> {
    let encode = |value: &f32| match dtype {
        Dtype::F32 => value.to_le_bytes().to_vec(),
        Dtype::F16 => f16::from_f32(*value).to_le_bytes().to_vec(),
        Dtype::BF16 => bf16::from_f32(*value).to_le_bytes().to_vec(),
        _ => vec![0],
    };
    let tensors = model.tensors.iter();
    tensors
        .map(|(name, shape, values)| (name.clone(), shape.clone(), dtype, values.iter().flat_map(encode).collect()))
        .collect()
}

fn write_safetensors(path: &Path, tensors: &[Encoded]) {
    let views: Vec<_> =
        tensors.iter().map(|(n, s, d, b)| (n.as_str(), TensorView::new(*d, s.clone(), b).unwrap())).collect();
    std::fs::write(path, safetensors::serialize(views, None).unwrap()).unwrap();
}

fn write_json(path: &Path, value: &serde_json::Value) {
    std::fs::write(path, value.to_string()).unwrap();
}

/// A folder with `config.json`, changed as told, and the weights in one file.
fn folder(change: impl Fn(&mut serde_json::Value)) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let model = TinyLlama::new();
    let mut config = model.config();
    change(&mut config);
    write_json(&folder.path().join("config.json"), &config);
    write_safetensors(&folder.path().join("model.safetensors"), &encoded(&model, Dtype::F32));
    folder
}

fn error(path: &Path) -> String {
    Source::open(path).expect_err("the checkpoint is wrong").to_string()
}

#[track_caller]
fn contains(found: &str, expected: &str) {
    assert!(found.contains(expected), "{found:?} does not say {expected:?}");
}

#[test]
fn both_forms_give_the_same_settings_and_weights() {
    let model = TinyLlama::new();
    let folder = folder(|_| {});
    let a = Source::open(folder.path()).unwrap();
    let b = Source::from_gguf(Gguf::parse(model.gguf(3).build()).unwrap()).unwrap();
    assert_eq!((a.format(), b.format()), (Format::HuggingFace, Format::Gguf));
    for source in [&a, &b] {
        let c = source.config();
        assert_eq!(source.architecture().name, "llama");
        assert_eq!((c.vocab_size, c.hidden_size, c.layers, c.heads, c.kv_heads), (24, 16, 2, 4, 2));
        assert_eq!((c.head_dim, c.ffn_size, c.context_length, c.bos), (6, 20, 128, Some(1)));
        assert_eq!((c.rope.theta, c.rope.dimensions, &c.rope.scaling), (50000.0, 6, &RopeScaling::None));
        assert!(!c.tie_embeddings && !c.qkv_bias && !c.mlp_bias && (c.norm_eps - 1e-5).abs() < 1e-11);
    }
    assert_eq!((a.config().eos.as_slice(), b.config().eos.as_slice()), (&[2, 3][..], &[2][..]));
    for (name, shape, values) in &model.tensors {
        let (a, b) = (a.tensor(name).unwrap(), b.tensor(name).unwrap());
        assert_eq!((a.name(), a.shape(), b.shape()), (name.as_str(), shape.as_slice(), shape.as_slice()));
        assert_eq!(&a.decode(), values, "{name}");
        assert_eq!(&b.decode(), values, "{name}");
        for row in 0..a.rows() {
            assert_eq!(a.row_bytes(row), b.row_bytes(row), "{name} row {row}");
        }
    }
    assert!(a.tensor("model.layers.2.mlp.up_proj.weight").is_err());
}

#[test]
fn half_precision_and_shards() {
    let model = TinyLlama::new();
    for dtype in [Dtype::F16, Dtype::BF16] {
        let folder = tempfile::tempdir().unwrap();
        write_json(&folder.path().join("config.json"), &model.config());
        let tensors = encoded(&model, dtype);
        let mut map = serde_json::Map::new();
        for (i, part) in tensors.chunks(7).enumerate() {
            let file = format!("model-{i}.safetensors");
            write_safetensors(&folder.path().join(&file), part);
            map.extend(part.iter().map(|(name, ..)| (name.clone(), json!(file))));
        }
        let index = folder.path().join("model.safetensors.index.json");
        write_json(&index, &json!({"metadata": {}, "weight_map": map}));
        let source = Source::open(folder.path()).unwrap();
        assert_eq!(source.weight_files().len(), tensors.len().div_ceil(7));
        for (name, _, values) in &model.tensors {
            let round =
                |v: &f32| if dtype == Dtype::F16 { f16::from_f32(*v).to_f32() } else { bf16::from_f32(*v).to_f32() };
            let expected: Vec<f32> = values.iter().map(round).collect();
            assert_eq!(source.tensor(name).unwrap().decode(), expected, "{dtype:?} {name}");
        }

        for wrong in ["../model-0.safetensors", "/etc/hostname", "sub/x.safetensors", ".."] {
            let mut map = map.clone();
            map.insert("lm_head.weight".into(), json!(wrong));
            write_json(&index, &json!({"weight_map": map}));
            contains(&error(folder.path()), "expected the name of a file in the folder");
        }
        map.insert("ghost".into(), json!("model-0.safetensors"));
        write_json(&index, &json!({"weight_map": map}));
        contains(&error(folder.path()), "\"ghost\" is not here");
        map.insert("ghost".into(), json!("model-9.safetensors"));
        write_json(&index, &json!({"weight_map": map}));
        contains(&error(folder.path()), "model-9.safetensors: cannot map");
        write_json(&index, &json!({"weight_map": 3}));
        contains(&error(folder.path()), "weight_map");
    }
}

#[test]
fn the_checkpoint_of_the_fixtures() {
    let source = Source::open(fixtures().join("tiny_article_hf")).unwrap();
    let config = source.config();
    assert_eq!((config.layers, config.hidden_size, config.heads, config.kv_heads), (2, 64, 4, 2));
    assert_eq!((config.head_dim, config.vocab_size, config.bos, config.eos.as_slice()), (16, 256, Some(1), &[2][..]));
    assert_eq!(source.tensor("lm_head.weight").unwrap().shape(), [256, 64]);
    assert!(source.tokenizer().unwrap_err().to_string().contains("tokenizer.json"));
}

#[test]
fn rope_scaling_in_every_spelling() {
    let scaling = |change: serde_json::Value| {
        let folder = folder(|config| config.as_object_mut().unwrap().extend(change.as_object().unwrap().clone()));
        Source::open(folder.path()).map(|source| source.config().rope.clone())
    };
    let llama3 = json!({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64});
    let expected =
        RopeScaling::Llama3 { factor: 8.0, low_freq_factor: 1.0, high_freq_factor: 4.0, original_context: 64.0 };
    assert_eq!(scaling(json!({"rope_scaling": llama3})).unwrap().scaling, expected);
    let mut parameters = llama3.clone();
    parameters["rope_theta"] = json!(123.0);
    let rope = scaling(json!({"rope_parameters": parameters, "rope_theta": null})).unwrap();
    assert_eq!((rope.theta, rope.scaling), (123.0, expected));
    let linear = scaling(json!({"rope_scaling": {"type": "linear", "factor": 2.0}})).unwrap();
    assert_eq!(linear.scaling, RopeScaling::Linear { factor: 2.0 });
    assert_eq!(scaling(json!({"rope_scaling": null})).unwrap().scaling, RopeScaling::None);
    assert_eq!(scaling(json!({"rope_scaling": {"rope_type": "default"}})).unwrap().scaling, RopeScaling::None);
    for kind in ["yarn", "dynamic", "spiral"] {
        let error = scaling(json!({"rope_scaling": {"rope_type": kind, "factor": 2.0}})).unwrap_err().to_string();
        contains(&error, &format!("rope scaling {kind:?} is not supported; supported: none, linear, llama3, longrope"));
    }
    let long = |short: &[f64]| {
        json!({"rope_scaling": {"type": "su", "short_factor": short, "long_factor": [1.0, 4.0, 16.0]},
               "original_max_position_embeddings": 32})
    };
    let magnitude = (1.0 + 4f64.ln() / 32f64.ln()).sqrt();
    let (short, longer) = (vec![1.0, 1.5, 2.0], vec![1.0, 4.0, 16.0]);
    let expected = RopeScaling::Long { short, long: longer, original_context: 32, magnitude };
    assert_eq!(scaling(long(&[1.0, 1.5, 2.0])).unwrap().scaling, expected);
    contains(&scaling(long(&[1.0, 1.5])).unwrap_err().to_string(), "`short_factor`: 2 factors; expected 3");
    let error = scaling(json!({"rope_scaling": {"type": "longrope"}})).unwrap_err().to_string();
    contains(&error, "`short_factor`: absent");
    contains(&scaling(json!({"rope_scaling": {"type": "linear"}})).unwrap_err().to_string(), "`factor`: absent");
    contains(&scaling(json!({"rope_theta": "big"})).unwrap_err().to_string(), "expected a finite number");
}

fn gguf_rope(change: impl Fn(GgufBuilder) -> GgufBuilder) -> Result<RopeScaling, ConvertError> {
    let file = change(TinyLlama::new().gguf(3)).build();
    Ok(Source::from_gguf(Gguf::parse(file)?)?.config().rope.scaling.clone())
}

#[test]
fn rope_scaling_of_gguf_files() {
    let kind = |kind: &'static str| {
        move |file: GgufBuilder| file.str("llama.rope.scaling.type", kind).f32("llama.rope.scaling.factor", 4.0)
    };
    assert_eq!(gguf_rope(kind("linear")).unwrap(), RopeScaling::Linear { factor: 4.0 });
    assert_eq!(gguf_rope(kind("none")).unwrap(), RopeScaling::None);
    contains(&gguf_rope(kind("yarn")).unwrap_err().to_string(), "rope scaling \"yarn\" is not supported");
    let listed = |factors: &'static [f32]| {
        move |file: GgufBuilder| file.tensor_f32("rope_freqs.weight", &[factors.len()], factors)
    };
    assert_eq!(gguf_rope(listed(&[1.0, 2.5, 8.0])).unwrap(), RopeScaling::Factors(vec![1.0, 2.5, 8.0]));
    assert_eq!(gguf_rope(listed(&[1.0, 1.0, 1.0])).unwrap(), RopeScaling::None);
    contains(&gguf_rope(listed(&[1.0, 2.0])).unwrap_err().to_string(), "2 factors; expected 3");
    contains(&gguf_rope(listed(&[1.0, 0.0, 2.0])).unwrap_err().to_string(), "`rope_freqs.weight`: 0.0; expected");
}

#[test]
fn what_is_not_supported_is_named() {
    let with = |change: serde_json::Value| {
        let folder = folder(|config| config.as_object_mut().unwrap().extend(change.as_object().unwrap().clone()));
        error(folder.path())
    };
    let supported = "supported: llama, mistral, smollm3, qwen2, qwen3, gemma2, gemma3, phi3, olmo2 (";
    let mamba = with(json!({"architectures": ["MambaForCausalLM"]}));
    contains(&mamba, "architecture \"MambaForCausalLM\" is not supported");
    contains(&mamba, supported);
    contains(&with(json!({"architectures": null, "model_type": "qwen3_moe"})), "architecture \"qwen3_moe\"");
    contains(&with(json!({"hidden_act": "gelu"})), "activation \"gelu\"");
    contains(&with(json!({"quantization_config": {"quant_method": "gptq"}})), "quantization \"gptq\"");
    contains(&with(json!({"partial_rotary_factor": 0.5})), "partial rotary");
    contains(&with(json!({"num_hidden_layers": null})), "`num_hidden_layers`: absent");
    contains(&with(json!({"num_attention_heads": 0, "head_dim": null})), "does not divide into 0 heads");
    contains(&with(json!({"num_key_value_heads": 3})), "does not divide the number of heads");
    contains(&with(json!({"num_hidden_layers": 3})), "\"model.layers.2.input_layernorm.weight\" is missing");
    contains(&with(json!({"intermediate_size": 21})), "mlp.gate_proj.weight\" has shape [20, 16]; expected [21, 16]");
    contains(&with(json!({"hidden_size": 1e30})), "expected a whole number");
    contains(&with(json!({"num_hidden_layers": u64::MAX})), "expected 1 to");

    let model = TinyLlama::new();
    let gguf = |file: GgufBuilder| Source::from_gguf(Gguf::parse(file.build()).unwrap()).unwrap_err().to_string();
    contains(&gguf(GgufBuilder::new(3).str("general.architecture", "rwkv7")), "architecture \"rwkv7\"");
    contains(&gguf(model.gguf(3).u32("llama.expert_count", 8)), "mixture of 8 experts");
    contains(
        &gguf(model.gguf(3).tensor_f32("blk.00.attn_q.weight", &[1], &[0.0])),
        "are both model.layers.0.self_attn.q_proj.weight",
    );
    let tokens = vec!["x"; 25];
    let too_many = model.gguf_settings(3).strings("tokenizer.ggml.tokens", &tokens);
    let too_many = too_many.tensor_f32("token_embd.weight", &[24, 16], &[0.0; 24 * 16]);
    contains(&gguf(too_many), "25 tokens, but the embedding has 24 rows");
    contains(&gguf(model.gguf_settings(3)), "token_embd.weight, is absent");
    let embedding = model.gguf_settings(3).tensor_f32("token_embd.weight", &[24, 16], &[0.0; 24 * 16]);
    contains(&gguf(embedding), "and 11 more");
    let wrong_type = model.gguf_settings(3).tensor("token_embd.weight", &[24, 256], 23, vec![0; 24 * 136]);
    contains(&gguf(wrong_type), "is of type IQ4_XS, which is not supported; supported: F32");
}

#[test]
fn mistral_has_its_own_defaults() {
    let model_type = |config: &mut serde_json::Value| {
        config["architectures"] = json!(["MistralForCausalLM"]);
        config["model_type"] = json!("mistral");
    };
    let open = |change: &dyn Fn(&mut serde_json::Value)| {
        let folder = folder(|config| {
            model_type(config);
            change(config);
        });
        Source::open(folder.path()).unwrap()
    };
    let source = open(&|_| {});
    assert_eq!((source.architecture().name, source.config().sliding_window), ("mistral", Some(4096)));
    assert_eq!(open(&|config| config["sliding_window"] = json!(null)).config().sliding_window, None);
    assert_eq!(open(&|config| config["sliding_window"] = json!(64)).config().sliding_window, Some(64));
}

#[test]
fn tied_embeddings_are_one_tensor() {
    let mut model = TinyLlama::new();
    model.tensors.pop();
    let source = Source::from_gguf(Gguf::parse(model.gguf(3).build()).unwrap()).unwrap();
    assert!(source.config().tie_embeddings);
    assert_eq!(source.tensor("lm_head.weight").unwrap().decode(), model.tensors[0].2);
    let folder = folder(|config| config["tie_word_embeddings"] = json!(true));
    let source = Source::open(folder.path()).unwrap();
    assert_eq!(source.tensor("lm_head.weight").unwrap().decode(), model.tensors[0].2);
}

#[test]
fn settings_and_templates_of_a_folder() {
    let folder = folder(|_| {});
    let write = |name: &str, value: serde_json::Value| write_json(&folder.path().join(name), &value);
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "pre_tokenizer": null,
        "decoder": null,
        "added_tokens": [{"id": 0, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}},
        },
        "model": {"type": "BPE", "vocab": {"<s>": 0, "a": 1}, "merges": []},
    });
    write("tokenizer.json", tokenizer.clone());
    write(
        "generation_config.json",
        json!({"bos_token_id": 0, "eos_token_id": [5, 6], "temperature": 0.6, "top_p": 0.9, "do_sample": true}),
    );
    write(
        "tokenizer_config.json",
        json!({
            "bos_token": "<s>", "eos_token": {"content": "<end>", "special": true},
            "added_tokens_decoder": {"0": {"content": "<s>"}, "7": {"content": "<end>"}},
            "chat_template": [{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}],
        }),
    );
    let source = Source::open(folder.path()).unwrap();
    let settings = source.generation();
    assert_eq!((settings.bos, settings.eos.as_slice()), (Some(0), &[5, 6, 7][..]));
    assert!(settings.add_bos && !settings.add_eos);
    assert_eq!((settings.temperature, settings.top_p, settings.do_sample), (Some(0.6), Some(0.9), Some(true)));
    let files = source.tokenizer().unwrap();
    assert_eq!(files.json, tokenizer.to_string());
    assert_eq!(files.chat_template.as_deref(), Some("D"));
    assert_eq!(files.named_templates["tool_use"], "T");
    assert_eq!(
        (files.special_tokens["bos_token"].as_str(), files.special_tokens["eos_token"].as_str()),
        ("<s>", "<end>")
    );

    std::fs::write(folder.path().join("chat_template.jinja"), "J").unwrap();
    assert_eq!(source.tokenizer().unwrap().chat_template.as_deref(), Some("J"));
    write("tokenizer_config.json", json!({"chat_template": 3}));
    assert!(source.tokenizer().is_err());
}

#[test]
fn settings_that_no_sampler_can_follow_are_refused_by_their_name() {
    let folder = folder(|_| {});
    for (settings, key) in [
        (json!({"eos_token_id": 4_000_000}), "eos_token_id"),
        (json!({"eos_token_id": [1, 4_000_000]}), "eos_token_id"),
        (json!({"temperature": -0.5}), "temperature"),
        (json!({"temperature": 1e39}), "temperature"),
        (json!({"top_p": 0}), "top_p"),
        (json!({"min_p": 1.5}), "min_p"),
        (json!({"repetition_penalty": 0}), "repetition_penalty"),
    ] {
        write_json(&folder.path().join("generation_config.json"), &settings);
        contains(&error(folder.path()), "generation_config.json");
        contains(&error(folder.path()), &format!("`{key}`"));
    }
    write_json(
        &folder.path().join("generation_config.json"),
        &json!({"temperature": 0, "top_p": 1, "eos_token_id": 1}),
    );
    assert_eq!(Source::open(folder.path()).unwrap().generation().eos, [1]);
}

#[test]
fn paths_that_hold_no_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    contains(&error(&folder.path().join("absent")), "cannot open");
    contains(&error(folder.path()), "there is no config.json");
    write_json(&folder.path().join("config.json"), &TinyLlama::new().config());
    contains(&error(folder.path()), "neither model.safetensors nor");
    std::fs::write(folder.path().join("pytorch_model.bin"), b"x").unwrap();
    contains(&error(folder.path()), "pickled");
    std::fs::write(folder.path().join("model.safetensors"), b"version https://git-lfs.github.com/spec/v1").unwrap();
    contains(&error(folder.path()), "git lfs pull");
    std::fs::write(folder.path().join("config.json"), b"[1]").unwrap();
    contains(&error(folder.path()), "not an object");
    std::fs::write(folder.path().join("config.json"), "[".repeat(100_000)).unwrap();
    contains(&error(folder.path()), "not JSON");
}

#[test]
fn a_folder_with_one_gguf_file_is_that_file() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = TinyLlama::new().gguf(3).str("general.name", "Tiny").build();
    std::fs::write(folder.path().join("tiny.gguf"), &bytes).unwrap();
    let source = Source::open(folder.path()).unwrap();
    assert_eq!((source.format(), source.name().as_str()), (Format::Gguf, "Tiny"));
    std::fs::write(folder.path().join("other.gguf"), &bytes).unwrap();
    contains(&error(folder.path()), "2 GGUF models; give the path of one: other.gguf, tiny.gguf");
}
