//! Files that were cut short or damaged: an error or a sound result, never a panic, and soon.

use anemone_convert::source::gguf::{Gguf, Value};
use anemone_convert::{Conversion, GenerationSettings, Options, Source, TokenizerFiles, Watch};
use bytes::Bytes;
use safetensors::{Dtype, tensor::TensorView};
use serde_json::json;

use crate::architectures::{folder as golden, gguf_of};
use crate::support::{GgufBuilder, Numbers, TinyLlama};

/// Whatever can be done with a file.
fn use_all(bytes: Bytes) {
    let Ok(file) = Gguf::parse(bytes) else { return };
    for (_, value) in file.metadata().iter() {
        if let Value::Array(array) = value {
            assert_eq!(array.iter().count(), array.len());
        }
    }
    for info in file.tensors().iter() {
        if let Some((kind, data)) = &info.data {
            let elements: usize = info.shape.iter().product();
            assert_eq!(kind.bytes_for(elements), Some(data.len()));
        }
    }
    let _ = GenerationSettings::from_gguf(&file);
    if let Ok(files) = TokenizerFiles::from_gguf(&file)
        && let Ok(tokenizer) = files.json.parse::<tokenizers::Tokenizer>()
    {
        let _ = tokenizer.encode("a b\u{301} <s>ﬁ½\u{1F30A}", true).map(|e| tokenizer.decode(e.get_ids(), false));
    }
    if let Ok(source) = Source::from_gguf(file) {
        for (name, shape) in (source.architecture().tensors)(source.config()) {
            let tensor = source.tensor(&name).unwrap();
            assert_eq!(tensor.shape(), shape);
            tensor.decode();
        }
    }
}

/// Small files, one of each kind of vocabulary.
fn seeds() -> Vec<Bytes> {
    let model = TinyLlama::new();
    let mut map = Vec::new();
    // A character map of one page whose root leads nowhere.
    map.extend(1024u32.to_le_bytes());
    map.extend([0; 1024]);
    let tokens = ["<unk>", "▁", "a", "b", "ab", "▁ab"];
    let unigram = GgufBuilder::new(3)
        .str("tokenizer.ggml.model", "t5")
        .strings("tokenizer.ggml.tokens", &tokens)
        .i32s("tokenizer.ggml.token_type", &[2, 1, 1, 1, 1, 1])
        .f32s("tokenizer.ggml.scores", &[0.0, -1.0, -2.0, -2.5, -3.0, -1.5])
        .array("tokenizer.ggml.precompiled_charsmap", 0, map.len(), &map);
    let byte_level = GgufBuilder::new(2)
        .str("tokenizer.ggml.model", "gpt2")
        .str("tokenizer.ggml.pre", "smollm")
        .strings("tokenizer.ggml.tokens", &["<|im_end|>", "Ġ", "a", "b", "ab"])
        .i32s("tokenizer.ggml.token_type", &[3, 1, 1, 1, 1])
        .strings("tokenizer.ggml.merges", &["a b"])
        .u32("tokenizer.ggml.eos_token_id", 0);
    vec![model.gguf(3).build(), model.gguf(1).build(), unigram.build(), byte_level.build()]
}

#[test]
fn gguf_files_cut_anywhere() {
    for seed in seeds() {
        // Every place in the header, and some in the data.
        for length in (0..seed.len().min(2500)).chain((2500..seed.len()).step_by(211)) {
            use_all(seed.slice(..length));
        }
    }
}

#[test]
fn gguf_files_with_damage() {
    let mut numbers = Numbers(11);
    for seed in seeds() {
        use_all(seed.clone());
        for _ in 0..1500 {
            let mut bytes = seed.to_vec();
            for _ in 0..=numbers.below(3) {
                let at = numbers.below(bytes.len().min(3000));
                match numbers.below(4) {
                    0 => bytes[at] ^= 1 << numbers.below(8),
                    1 => bytes[at] = numbers.next() as u8,
                    2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][numbers.below(5)],
                    _ => {
                        let end = (at + 8).min(bytes.len());
                        bytes[at..end].fill(0xff);
                    }
                }
            }
            use_all(bytes.into());
        }
    }
}

#[test]
fn gguf_files_of_other_architectures_with_damage() {
    let mut numbers = Numbers(17);
    for name in ["phi3_long", "gemma2_scaled", "olmo2"] {
        let seed = gguf_of(name).build();
        use_all(seed.clone());
        for _ in 0..150 {
            let mut bytes = seed.to_vec();
            for _ in 0..=numbers.below(2) {
                let at = numbers.below(bytes.len().min(3500));
                bytes[at] = [0, 1, 0x7f, 0xff, numbers.next() as u8][numbers.below(5)];
            }
            use_all(bytes.into());
        }
    }
}

/// Settings that no model has: an error, or a model that can be converted.
#[test]
fn settings_of_every_wrong_kind() {
    let wrong = [
        json!(null),
        json!(0),
        json!(1),
        json!(-1),
        json!(3),
        json!(1e-30),
        json!(1e30),
        json!(u64::MAX),
        json!("x"),
        json!([]),
        json!([1, 0]),
        json!({}),
        json!(true),
        json!({"rope_type": "longrope", "factor": 0}),
        json!({"full_attention": {"rope_theta": -1}, "sliding_attention": 3}),
    ];
    let more =
        ["layer_types", "rope_parameters", "sliding_window_pattern", "no_rope_layers", "text_config", "attention_bias"];
    for name in ["phi3_long", "gemma2_scaled"] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::copy(golden(name).join("model.safetensors"), folder.path().join("model.safetensors")).unwrap();
        let config: serde_json::Value =
            serde_json::from_slice(&std::fs::read(golden(name).join("config.json")).unwrap()).unwrap();
        let keys = config.as_object().unwrap().keys().map(String::as_str);
        for key in keys.chain(more) {
            for wrong in &wrong {
                let mut config = config.clone();
                config[key] = wrong.clone();
                std::fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
                let Ok(source) = Source::open(folder.path()) else { continue };
                let Ok(conversion) = Conversion::new(&source, &Options { context: Some(32), ..Options::default() })
                else {
                    continue;
                };
                // Most of what is left only changes a number.
                if wrong.is_object() || wrong == &json!(1e30) {
                    let dest = folder.path().join("out");
                    let _ = conversion.run(&dest, &Watch::default());
                }
            }
        }
    }
}

#[test]
fn vocabularies_that_would_grow_without_end_are_refused() {
    // All runs of one letter: every piece can be made in as many ways as it is long.
    let tokens: Vec<String> =
        (0..6).flat_map(|c| (1..=512).map(move |n| char::from(b'a' + c).to_string().repeat(n))).collect();
    let file =
        GgufBuilder::new(3).str("tokenizer.ggml.model", "llama").strings("tokenizer.ggml.tokens", &tokens).build();
    let error = TokenizerFiles::from_gguf(&Gguf::parse(file).unwrap()).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("more ways to join pieces"), "{error}");
}

#[test]
fn safetensors_files_cut_or_damaged() {
    let model = TinyLlama::new();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("config.json"), model.config().to_string()).unwrap();
    let bytes: Vec<Vec<u8>> =
        model.tensors.iter().map(|(_, _, values)| values.iter().flat_map(|v| v.to_le_bytes()).collect()).collect();
    let views =
        model.tensors.iter().zip(&bytes).map(|((name, shape, _), bytes)| {
            (name.as_str(), TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap())
        });
    let whole = safetensors::serialize(views, None).unwrap();
    let path = folder.path().join("model.safetensors");
    let try_open = |bytes: &[u8]| {
        // A new file each time: one that is mapped must not change under its map.
        std::fs::remove_file(&path).ok();
        std::fs::write(&path, bytes).unwrap();
        if let Ok(source) = Source::open(folder.path()) {
            for (name, _) in (source.architecture().tensors)(source.config()) {
                source.tensor(&name).unwrap().decode();
            }
        }
    };
    try_open(&whole);
    for length in (0..whole.len()).step_by(97) {
        try_open(&whole[..length]);
    }
    let mut numbers = Numbers(13);
    for _ in 0..600 {
        let mut bytes = whole.clone();
        let at = numbers.below(2500);
        bytes[at] = numbers.next() as u8;
        try_open(&bytes);
    }
    for header in [u64::MAX, 1 << 40, whole.len() as u64, 0, 1] {
        let mut bytes = whole.clone();
        bytes[..8].copy_from_slice(&header.to_le_bytes());
        try_open(&bytes);
        assert!(Source::open(folder.path()).is_err(), "{header}");
    }
}

#[test]
fn damaged_json_of_a_folder() {
    let model = TinyLlama::new();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null,
        "added_tokens": [{"id": 0, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "post_processor": null, "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "vocab": {"<s>": 0, "a": 1, "b": 2, "ab": 3}, "merges": ["a b"]},
    })
    .to_string();
    let files = [
        ("config.json", model.config().to_string()),
        ("tokenizer.json", tokenizer),
        ("tokenizer_config.json", json!({"bos_token": "<s>", "chat_template": "x", "add_bos_token": true}).to_string()),
        ("generation_config.json", json!({"eos_token_id": [2], "temperature": 0.5}).to_string()),
        ("model.safetensors.index.json", json!({"weight_map": {"a": "b.safetensors"}}).to_string()),
    ];
    for (name, text) in &files {
        std::fs::write(path(name), text).unwrap();
    }
    let mut numbers = Numbers(17);
    for (name, text) in &files {
        for _ in 0..300 {
            let mut bytes = text.clone().into_bytes();
            match numbers.below(3) {
                0 => bytes.truncate(numbers.below(bytes.len())),
                1 => {
                    let at = numbers.below(bytes.len());
                    let odd = b"\"{}[],:0-9e\xff\0";
                    bytes[at] = odd[numbers.below(odd.len())];
                }
                _ => {
                    let at = numbers.below(bytes.len());
                    bytes.splice(at..at, b"99999999999999999999".iter().copied());
                }
            }
            std::fs::write(path(name), &bytes).unwrap();
            let _ = Source::open(folder.path());
            if let Ok(files) = TokenizerFiles::from_folder(folder.path()) {
                let tokenizer = anemone_convert::tokenizer::load(folder.path(), &files.json).unwrap();
                let _ = tokenizer.encode("ab <s> a", true).map(|e| tokenizer.decode(e.get_ids(), false));
            }
        }
        std::fs::write(path(name), text).unwrap();
    }
}

#[test]
fn normalizers_that_would_grow_a_text_without_end_are_refused() {
    let path = std::path::Path::new("tokenizer.json");
    let steps = |n: usize| {
        let step = serde_json::json!({"type": "Replace", "pattern": {"Regex": "."}, "content": "aaaaaaaaaaaaaaa"});
        let json = serde_json::json!({
            "version": "1.0", "added_tokens": [],
            "normalizer": {"type": "Sequence", "normalizers": vec![step; n]},
            "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []},
        });
        anemone_convert::tokenizer::load(path, &json.to_string())
    };
    assert!(steps(4).is_ok());
    let error = steps(5).unwrap_err().to_string();
    assert!(error.contains("times as long"), "{error}");
}
