//! The 200 tokens of `goldens/tiny`, pinned by the interpreter, through the binary.

use std::path::PathBuf;

use serde_json::Value;

use super::support::anemone;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../goldens/tiny")
}

fn pins() -> Value {
    serde_json::from_slice(&std::fs::read(folder().join("greedy.json")).unwrap()).unwrap()
}

#[test]
fn run_answers_with_the_pinned_text() {
    let (pins, model) = (pins(), folder().join("model"));
    let message = pins["message"].as_str().unwrap();
    let base = ["run", "-m", model.to_str().unwrap(), "--temperature", "0", "--max-tokens", "200", message];
    let turn: Value = serde_json::from_str(&anemone(base.iter().chain(&["--json"])).ok()).unwrap();
    assert_eq!(turn["text"], pins["text"]);
    assert_eq!(turn["tokens_generated"], 200);
    assert_eq!(turn["tokens_computed"], pins["prompt"].as_array().unwrap().len());
    assert_eq!(turn["stop_reason"], "max_tokens");
    assert_eq!(anemone(base).ok().trim_end_matches('\n'), pins["text"].as_str().unwrap().trim_end_matches('\n'));
}

#[test]
fn the_checkpoint_converted_with_another_width_answers_the_same() {
    let (dest, model) = (tempfile::tempdir().unwrap(), folder().join("model"));
    let (source, out) = (folder().join("tiny-llama"), dest.path().join("model"));
    let arguments = ["convert", source.to_str().unwrap(), "-o", out.to_str().unwrap(), "--context", "256"];
    anemone(arguments).ok();
    let pins = pins();
    let ask = |model: &PathBuf| {
        let message = pins["message"].as_str().unwrap();
        let base = ["run", "-m", model.to_str().unwrap(), "--temperature", "0", "--max-tokens", "200", "--json"];
        let turn: Value = serde_json::from_str(&anemone(base.iter().chain(&[message])).ok()).unwrap();
        turn["text"].clone()
    };
    // Its prefill is wider, as the binary makes it by default: the answer is the same.
    assert_eq!(ask(&out), pins["text"]);
    assert_ne!(std::fs::read(out.join("anemone.json")).unwrap(), std::fs::read(model.join("anemone.json")).unwrap());
}
