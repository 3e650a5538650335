//! What only some architectures have in their settings and files, right and wrong.

use std::path::Path;

use anemone_convert::source::config::{Layers, RopeScaling};
use anemone_convert::source::gguf::Gguf;
use anemone_convert::{Conversion, Options, Source, Split, Watch};
use half::f16;
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde_json::{Value, json};

use crate::architectures::{folder as golden, gguf_of};

/// A golden, with its settings and tensors changed as told.
fn changed(name: &str, change: impl Fn(&mut Value), rename: impl Fn(&str) -> String) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut config: Value = serde_json::from_slice(&std::fs::read(golden(name).join("config.json")).unwrap()).unwrap();
    change(&mut config);
    std::fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    let bytes = std::fs::read(golden(name).join("model.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let renamed = tensors.tensors().into_iter().map(|(name, view)| (rename(&name), view));
    std::fs::write(folder.path().join("model.safetensors"), safetensors::serialize(renamed, None).unwrap()).unwrap();
    folder
}

fn with(name: &str, change: Value) -> Result<Source, String> {
    let add = |config: &mut Value| {
        config.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    };
    Source::open(changed(name, add, str::to_owned).path()).map_err(|e| e.to_string())
}

#[track_caller]
fn refused(name: &str, change: Value, expected: &str) {
    let error = with(name, change).expect_err("the checkpoint is wrong");
    assert!(error.contains(expected), "{error:?} does not say {expected:?}");
}

#[test]
fn layers_with_windows() {
    let windows = |name: &str, change: Value| {
        let source = with(name, change).unwrap();
        let config = source.config().clone();
        (0..config.layers).map(|layer| config.window(layer)).collect::<Vec<_>>()
    };
    let (near, all) = (Some(8), None);
    assert_eq!(windows("gemma3", json!({})), [near, near, near, near, near, all, near]);
    assert_eq!(windows("gemma3", json!({"sliding_window_pattern": 2})), [near, all, near, all, near, all, near]);
    assert_eq!(windows("gemma2", json!({})), [near, all]);
    assert_eq!(windows("gemma2", json!({"layer_types": ["full_attention", "sliding_attention"]})), [all, near]);
    assert_eq!(windows("qwen2_sliding", json!({})), [all, near]);
    assert_eq!(windows("qwen2_sliding", json!({"use_sliding_window": false})), [all, all]);
    assert_eq!(windows("qwen3", json!({"sliding_window": 8})), [all, all]);
    assert_eq!(windows("phi3", json!({})), [near]);
    assert_eq!(windows("phi3", json!({"sliding_window": null})), [all]);
    // Hugging Face's Llama does not look at it.
    assert_eq!(windows("llama", json!({"sliding_window": 8}))[0], all);
    assert_eq!(windows("mistral", json!({"sliding_window": 8}))[0], near);
    let smollm = json!({"use_sliding_window": true, "sliding_window": 8});
    assert_eq!(windows("smollm3", smollm), [all, all, all, near]);

    refused("gemma2", json!({"layer_types": ["full_attention"]}), "`layer_types`: 1 layers; expected 2");
    refused("gemma2", json!({"layer_types": ["full_attention", "linear_attention"]}), "\"linear_attention\"; expected");
    refused("gemma3", json!({"sliding_window_pattern": 0}), "groups of 0 layers");
    refused("smollm3", json!({"no_rope_layers": [1]}), "`no_rope_layers`: 1 layers; expected 4");
    refused("smollm3", json!({"no_rope_layer_interval": 0}), "groups of 0 layers");
    assert_eq!(
        with("smollm3", json!({"no_rope_layers": [0, 1, 1, 0]})).unwrap().config().rotary_layers,
        Layers::Listed(vec![false, true, true, false])
    );
}

#[test]
fn settings_that_no_model_has_are_refused_by_name() {
    refused(
        "gemma2",
        json!({"hidden_activation": "silu"}),
        "activation \"silu\" is not supported; this family has \"gelu_",
    );
    refused("qwen2", json!({"hidden_act": "relu"}), "activation \"relu\"");
    refused("gemma3", json!({"use_bidirectional_attention": true}), "use_bidirectional_attention");
    refused("gemma2", json!({"query_pre_attn_scalar": -1.0}), "`query_pre_attn_scalar`: -1.0; expected");
    refused("gemma2", json!({"attn_logit_softcapping": 0.0}), "`attn_logit_softcapping`: 0.0; expected");
    refused("qwen3", json!({"partial_rotary_factor": 0.5}), "partial rotary");
    refused("phi3", json!({"partial_rotary_factor": 7.0}), "rotary dimensions");
    refused("phi3", json!({"partial_rotary_factor": 0.99}), "rotary dimensions");
    refused("phi3_long", json!({"rope_scaling": {"type": "longrope", "short_factor": [1.0]}}), "`long_factor`: absent");
    refused("qwen3", json!({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}), "rope scaling \"yarn\"");
    refused("phi3", json!({"num_key_value_heads": 1}), "qkv_proj.weight\" has shape [576, 192]; expected [384, 192]");
    refused("phi3", json!({"intermediate_size": 24}), "gate_up_proj.weight\" has shape [96, 192]; expected [48, 192]");
    refused("olmo2_grouped", json!({"head_dim": 32}), "self_attn.q_norm.weight\" has shape [192]; expected [96]");
    refused(
        "qwen2",
        json!({"architectures": ["LlamaForCausalLM"], "attention_bias": true}),
        "o_proj.bias\" is missing",
    );
}

/// Numbers that are finite and yet no model's: what is computed with them is not.
#[test]
fn numbers_beyond_any_model_are_refused_by_name_with_what_is_expected() {
    let rope = |scaling: Value| json!({"rope_scaling": scaling});
    let llama3 = |key: &str, value: f64| {
        let mut scaling = json!({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192});
        scaling[key] = value.into();
        json!({"rope_scaling": scaling})
    };
    for (name, change, field) in [
        ("qwen2", json!({"rms_norm_eps": 1e40}), "rms_norm_eps`: 1e40; expected a number from 1e-30 to 0.1"),
        ("qwen2", json!({"rms_norm_eps": 0.0}), "rms_norm_eps`: 0.0; expected"),
        ("qwen2", json!({"rms_norm_eps": -1e-6}), "rms_norm_eps`: -1e-6; expected"),
        ("qwen2", json!({"rms_norm_eps": 1.0}), "rms_norm_eps`: 1.0; expected"),
        ("qwen2", json!({"rope_theta": 1e308}), "rope_theta`: 1e308; expected a number from 1.0 to 1000000000000.0"),
        ("qwen2", json!({"rope_theta": 1e-300}), "rope_theta`: 1e-300; expected"),
        ("qwen2", json!({"rope_theta": 0.5}), "rope_theta`: 0.5; expected"),
        ("gemma3", json!({"rope_local_base_freq": 1e300}), "rope_local_base_freq`: 1e300; expected"),
        ("qwen2", rope(json!({"rope_type": "linear", "factor": 1e300})), "factor`: 1e300; expected"),
        ("qwen2", llama3("factor", 1e-200), "factor`: 1e-200; expected"),
        ("qwen2", llama3("low_freq_factor", 1e200), "low_freq_factor`: 1e200; expected"),
        ("qwen2", llama3("high_freq_factor", 1.0), "high_freq_factor - low_freq_factor`: 0.0; expected"),
        ("gemma2", json!({"query_pre_attn_scalar": 1e300}), "query_pre_attn_scalar`: 1e300; expected"),
        ("gemma2", json!({"attn_logit_softcapping": 1e300}), "attn_logit_softcapping`: 1e300; expected"),
        ("gemma2", json!({"final_logit_softcapping": 1e-300}), "final_logit_softcapping`: 1e-300; expected"),
        ("phi3", json!({"partial_rotary_factor": 1e300}), "rotary dimensions"),
    ] {
        refused(name, change, field);
    }
    // What models have.
    for (name, change) in [
        ("qwen2", json!({"rms_norm_eps": 1e-12, "rope_theta": 1e8})),
        ("qwen2", rope(json!({"rope_type": "linear", "factor": 64.0}))),
        (
            "gemma2",
            json!({"query_pre_attn_scalar": 4096, "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0}),
        ),
    ] {
        with(name, change).unwrap();
    }
}

#[test]
fn rotary_positions_as_transformers_5_writes_them() {
    let parameters = json!({"rope_scaling": null, "rope_theta": null, "rope_local_base_freq": null, "rope_parameters": {
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    }});
    let (old, new) = (with("gemma3", json!({})).unwrap(), with("gemma3", parameters).unwrap());
    assert_eq!(old.config().rope.scaling, RopeScaling::Linear { factor: 8.0 });
    assert_eq!((&old.config().rope, &old.config().local_rope), (&new.config().rope, &new.config().local_rope));
}

#[test]
fn the_part_that_speaks_of_a_model_that_sees() {
    let nested = |config: &mut Value| {
        let mut text = config.take();
        text.as_object_mut().unwrap().remove("architectures");
        *config = json!({
            "architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", "text_config": text,
            "vision_config": {"hidden_size": 9}, "eos_token_id": [2, 5],
        });
    };
    let plain = Source::open(golden("gemma3")).unwrap();
    for rename in
        [|name: &str| format!("language_model.{name}"), |name: &str| name.replace("model.", "model.language_model.")]
    {
        let folder = changed("gemma3", nested, rename);
        let source = Source::open(folder.path()).unwrap();
        assert_eq!((source.architecture().name, source.config().eos.as_slice()), ("gemma3", &[2, 5][..]));
        for (name, _) in (source.architecture().tensors)(source.config()) {
            let (a, b) = (source.tensor(&name).unwrap(), plain.tensor(&name).unwrap());
            assert_eq!((a.name(), a.decode()), (name.as_str(), b.decode()));
        }
        let notes = Conversion::new(&source, &Options::default()).unwrap().notes();
        assert!(notes.iter().any(|note| note.contains("the part that speaks")), "{notes:?}");
    }
}

#[test]
fn gguf_files_of_what_is_not_converted() {
    let error = |file: bytes::Bytes| Source::from_gguf(Gguf::parse(file).unwrap()).unwrap_err().to_string();
    let olmo3 = gguf_of("olmo2").u32("olmo2.attention.sliding_window", 8);
    assert!(error(olmo3.build()).contains("OLMo 3 is not converted"));
    let both = gguf_of("phi3_long").str("phi3.rope.scaling.type", "linear").f32("phi3.rope.scaling.factor", 2.0);
    assert!(error(both.build()).contains("several at once"));
    let pattern = gguf_of("gemma3").u32("gemma3.attention.sliding_window_pattern", 3);
    let source = Source::from_gguf(Gguf::parse(pattern.build()).unwrap()).unwrap();
    assert_eq!(source.config().sliding_layers, Layers::AllButEvery(3));
    let listed = gguf_of("gemma3").array("gemma3.attention.sliding_window_pattern", 7, 7, &[1, 0, 1, 0, 1, 0, 1]);
    let source = Source::from_gguf(Gguf::parse(listed.build()).unwrap()).unwrap();
    assert_eq!(source.config().window(0).zip(source.config().window(1)), None);
    assert_eq!(source.config().window(2), Some(8));
}

/// What stands in the folder for a converted model after an attempt.
fn left_behind(dest: &Path) -> Vec<String> {
    let listed = std::fs::read_dir(dest).unwrap();
    listed.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn weights_that_are_no_numbers_are_refused_before_anything_is_written() {
    for (bad, shown) in [(f16::NAN, "NaN"), (f16::INFINITY, "inf")] {
        for tensor in ["model.layers.1.mlp.down_proj.weight", "model.layers.0.self_attn.q_norm.weight"] {
            let folder = changed("qwen3", |_| {}, str::to_owned);
            let bytes = std::fs::read(golden("qwen3").join("model.safetensors")).unwrap();
            let file = SafeTensors::deserialize(&bytes).unwrap();
            let spoilt: Vec<(String, Vec<usize>, Vec<u8>)> = file
                .tensors()
                .into_iter()
                .map(|(name, view)| {
                    let mut data = view.data().to_vec();
                    if name == tensor {
                        let at = data.len() - 2;
                        data[at..].copy_from_slice(&bad.to_le_bytes());
                    }
                    (name, view.shape().to_vec(), data)
                })
                .collect();
            let views = spoilt.iter().map(|(n, s, d)| (n.as_str(), TensorView::new(Dtype::F16, s.clone(), d).unwrap()));
            std::fs::write(folder.path().join("model.safetensors"), safetensors::serialize(views, None).unwrap())
                .unwrap();
            let source = Source::open(folder.path()).unwrap();
            let dest = tempfile::tempdir().unwrap();
            let conversion = Conversion::new(&source, &Options::default()).unwrap();
            let error = conversion.run(&dest.path().join("model"), &Watch::default()).unwrap_err().to_string();
            assert!(error.contains(tensor) && error.contains(shown), "{error}");
            assert_eq!(left_behind(dest.path()), [""; 0]);
        }
    }
}

#[test]
fn tokenizers_of_other_vocabularies_are_refused_before_anything_is_written() {
    let folder = changed("qwen3", |_| {}, str::to_owned);
    let tokenizer = |beyond: u32, added: &[u32]| {
        let special = |&id: &u32| {
            json!({"id": id, "content": format!("<{id}>"), "single_word": false, "lstrip": false, "rstrip": false,
                   "normalized": false, "special": true})
        };
        let json = json!({
            "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "pre_tokenizer": null,
            "post_processor": null, "decoder": null, "added_tokens": added.iter().map(special).collect::<Vec<_>>(),
            "model": {"type": "BPE", "vocab": {"a": 0, "b": beyond}, "merges": []},
        });
        std::fs::write(folder.path().join("tokenizer.json"), json.to_string()).unwrap();
        let source = Source::open(folder.path()).unwrap();
        Conversion::new(&source, &Options::default()).map(|conversion| conversion.notes()).map_err(|e| e.to_string())
    };
    assert_eq!(tokenizer(95, &[]), Ok(vec![]));
    let error = tokenizer(96, &[]).unwrap_err();
    assert!(error.contains("it has a token 96, but the model's embedding has 96 rows"), "{error}");
    let notes = tokenizer(95, &[96]).unwrap();
    assert!(
        notes.len() == 1 && notes[0].contains("no rows for these tokens") && notes[0].contains("<96>"),
        "{notes:?}"
    );
}

#[test]
fn contexts_beyond_the_models_are_refused() {
    let source = Source::open(golden("phi3_long")).unwrap();
    let options = Options { context: Some(129), ..Options::default() };
    let error = Conversion::new(&source, &options).unwrap_err().to_string();
    assert!(error.contains("129; expected 2 to 128, the context that the model was made for"), "{error}");
}

/// Packages can't share weights, so that parts are larger than one package; by how much is said.
#[test]
fn an_embedding_that_two_parts_need_is_told() {
    for (name, tied) in [("qwen2", true), ("qwen3", false)] {
        let source = with(name, json!({})).unwrap();
        assert_eq!(source.config().tie_embeddings, tied);
        let cost = |split| {
            let conversion = Conversion::new(&source, &Options { split, ..Options::default() }).unwrap();
            let told = conversion.notes().into_iter().find(|note| note.contains("stored twice"));
            (conversion.estimate().weight_bytes, told)
        };
        let (one, none) = cost(Split::Auto);
        assert_eq!(none, None);
        for count in [2, 3] {
            let (several, told) = cost(Split::Count(count));
            let more = format!("takes {:.1} MB more than one package", (several - one) as f64 / 1e6);
            assert_eq!(several > one, tied);
            assert!(told.is_some_and(|told| told.contains(&more)) == tied, "{more}");
        }
    }
}
