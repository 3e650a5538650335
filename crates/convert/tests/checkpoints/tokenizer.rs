//! Tokenizers rebuilt from GGUF metadata, against what other programs make of the same vocabularies.

use anemone_convert::source::gguf::Gguf;
use anemone_convert::{GenerationSettings, TokenizerFiles};
use serde_json::Value;
use tokenizers::Tokenizer;

use crate::support::{GgufBuilder, data};

fn json(name: &str) -> Value {
    serde_json::from_slice(&data(&format!("tokenizer/{name}.json"))).unwrap()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|v| v.as_str().unwrap().to_owned()).collect()
}

fn ids(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|v| v.as_u64().unwrap() as u32).collect()
}

/// The metadata that llama.cpp's converter writes for a SentencePiece model.
fn sentencepiece(model: &str, data: &Value) -> GgufBuilder {
    let types: Vec<i32> = data["types"].as_array().unwrap().iter().map(|v| v.as_i64().unwrap() as i32).collect();
    let scores: Vec<f32> = data["scores"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap() as f32).collect();
    let id = |name: &str| data[name].as_u64().unwrap() as u32;
    let map = data["charsmap"].as_str().unwrap();
    let map: Vec<u8> = (0..map.len()).step_by(2).map(|i| u8::from_str_radix(&map[i..i + 2], 16).unwrap()).collect();
    GgufBuilder::new(3)
        .str("tokenizer.ggml.model", model)
        .strings("tokenizer.ggml.tokens", &texts(&data["tokens"]))
        .i32s("tokenizer.ggml.token_type", &types)
        .f32s("tokenizer.ggml.scores", &scores)
        .u32("tokenizer.ggml.bos_token_id", id("bos"))
        .u32("tokenizer.ggml.eos_token_id", id("eos"))
        .u32("tokenizer.ggml.unknown_token_id", id("unk"))
        .bool("tokenizer.ggml.add_space_prefix", data["add_space_prefix"].as_bool().unwrap())
        .bool("tokenizer.ggml.remove_extra_whitespaces", data["remove_extra_whitespaces"].as_bool().unwrap())
        .array("tokenizer.ggml.precompiled_charsmap", 0, map.len(), &map)
}

fn load(file: &Gguf) -> (TokenizerFiles, Tokenizer) {
    let files = TokenizerFiles::from_gguf(file).unwrap();
    let tokenizer = files.json.parse().unwrap();
    (files, tokenizer)
}

fn same_as_sentencepiece(model: &str, name: &str) {
    let data = json(name);
    let (_, tokenizer) = load(&Gguf::parse(sentencepiece(model, &data).build()).unwrap());
    let cases = data["cases"].as_array().unwrap();
    assert!(cases.len() >= 25);
    let mut wrong = Vec::new();
    for case in cases {
        let text = case["text"].as_str().unwrap();
        let found = tokenizer.encode(text, false).unwrap();
        if found.get_ids() != ids(&case["ids"]) {
            wrong.push(format!("{text:?}: {:?} against {:?}", found.get_ids(), ids(&case["ids"])));
        }
        let decoded = tokenizer.decode(&ids(&case["ids"]), false).unwrap();
        // SentencePiece shows what it does not know as " ⁇ ", and takes a "▁" at the beginning of a text for a space.
        let expected = case["decoded"].as_str().unwrap().replace(" ⁇ ", "<unk>");
        if decoded != expected && !text.starts_with('▁') {
            wrong.push(format!("{text:?} is decoded to {decoded:?} against {}", case["decoded"]));
        }
    }
    assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n"));
}

#[test]
fn sentencepiece_bpe_with_byte_fallback() {
    same_as_sentencepiece("llama", "sentencepiece_bpe");
}

#[test]
fn sentencepiece_bpe_without_prefix_and_bytes() {
    same_as_sentencepiece("llama", "sentencepiece_bpe_plain");
}

#[test]
fn sentencepiece_bpe_with_symbols_for_white_space() {
    same_as_sentencepiece("llama", "sentencepiece_gemma");
}

#[test]
fn sentencepiece_unigram_with_character_map() {
    same_as_sentencepiece("t5", "sentencepiece_unigram");
}

#[test]
fn special_tokens_in_text_and_around_it() {
    let data = json("sentencepiece_bpe");
    let file = Gguf::parse(sentencepiece("llama", &data).bool("tokenizer.ggml.add_eos_token", true).build()).unwrap();
    let (files, tokenizer) = load(&file);
    let settings = GenerationSettings::from_gguf(&file).unwrap();
    // A SentencePiece vocabulary begins texts with <s> unless told otherwise.
    assert!(settings.add_bos && settings.add_eos);
    assert_eq!((settings.bos, settings.eos.as_slice()), (Some(1), &[2][..]));
    let around = tokenizer.encode("ka", true).unwrap();
    let plain = tokenizer.encode("ka", false).unwrap();
    assert_eq!(around.get_ids(), [&[1], plain.get_ids(), &[2]].concat());
    let turn = texts(&data["tokens"]).iter().position(|token| token == "<|turn|>").unwrap() as u32;
    let inside = tokenizer.encode("<s>ka<|turn|>", false).unwrap();
    assert_eq!(inside.get_ids(), [&[1], plain.get_ids(), &[turn]].concat());
    assert_eq!(files.special_tokens["unk_token"], "<unk>");
    assert_eq!(tokenizer.decode(inside.get_ids(), true).unwrap(), "ka<|turn|>");
}

#[test]
fn the_tokens_of_phi_3_take_the_space_behind_them() {
    let data = json("sentencepiece_bpe");
    let of = |arch: &str, text: &str| {
        let file = sentencepiece("llama", &data).str("general.architecture", arch).build();
        let (_, tokenizer) = load(&Gguf::parse(file).unwrap());
        tokenizer.encode(text, false).unwrap().get_ids().to_vec()
    };
    assert_eq!(of("phi3", "<|turn|>\n  ka"), of("phi3", "<|turn|>ka"));
    assert_eq!(of("phi3", "<|turn|>ka"), of("llama", "<|turn|>ka"));
    assert_ne!(of("phi3", "<s>\n  ka"), of("phi3", "<s>ka"));
    assert_ne!(of("llama", "<|turn|>\n  ka"), of("llama", "<|turn|>ka"));
}

/// The 256 texts of bytes in byte-level vocabularies.
fn byte_texts() -> Vec<String> {
    let printable = |b: u32| matches!(b, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    let mut shifted = 256;
    (0..256)
        .map(|b| {
            let code = if printable(b) {
                b
            } else {
                shifted += 1;
                shifted - 1
            };
            char::from_u32(code).unwrap().to_string()
        })
        .collect()
}

fn byte_level(pre: &str, merges: &[&str], more: &[(&str, i32)]) -> GgufBuilder {
    let mut tokens = byte_texts();
    let mut types = vec![1; tokens.len()];
    for (text, kind) in more {
        tokens.push((*text).to_owned());
        types.push(*kind);
    }
    GgufBuilder::new(3)
        .str("tokenizer.ggml.model", "gpt2")
        .str("tokenizer.ggml.pre", pre)
        .strings("tokenizer.ggml.tokens", &tokens)
        .i32s("tokenizer.ggml.token_type", &types)
        .strings("tokenizer.ggml.merges", merges)
}

#[test]
fn words_are_cut_as_the_patterns_say() {
    let data = json("words");
    let mut wrong = Vec::new();
    for (pre, cases) in data.as_object().unwrap() {
        let (_, tokenizer) = load(&Gguf::parse(byte_level(pre, &[], &[]).build()).unwrap());
        for case in cases.as_array().unwrap() {
            let text = case["text"].as_str().unwrap();
            let encoding = tokenizer.encode(text, false).unwrap();
            // Without merges every token is a byte; tokens of one word have one word id.
            let mut words: Vec<Vec<u8>> = Vec::new();
            let mut last = None;
            for (id, word) in encoding.get_ids().iter().zip(encoding.get_word_ids()) {
                if words.is_empty() || *word != last {
                    words.push(Vec::new());
                    last = *word;
                }
                words.last_mut().unwrap().push(*id as u8);
            }
            let found: Vec<String> = words.into_iter().map(|word| String::from_utf8(word).unwrap()).collect();
            if found != texts(&case["words"]) {
                wrong.push(format!("{pre} {text:?}: {found:?} against {}", case["words"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_deepseek_distilled_has_its_tokens_around_the_words_of_its_base() {
    let more = [
        ("<｜begin▁of▁sentence｜>", 3),
        ("<｜end▁of▁sentence｜>", 3),
        ("<｜User｜>", 3),
        ("<｜Assistant｜>", 3),
        ("<think>", 4),
    ];
    let of = |pre: &str| {
        let file = byte_level(pre, &[], &more)
            .u32("tokenizer.ggml.bos_token_id", 256)
            .u32("tokenizer.ggml.eos_token_id", 257)
            .bool("tokenizer.ggml.add_bos_token", true);
        Gguf::parse(file.build()).unwrap()
    };
    for (pre, base) in [("deepseek-r1-qwen", "qwen2"), ("llama-bpe", "llama-bpe")] {
        let (file, own) = (of(pre), of(base));
        let (files, tokenizer) = load(&file);
        let text = "<｜User｜>ab<｜Assistant｜><think>\n";
        let ids = tokenizer.encode(text, true).unwrap().get_ids().to_vec();
        assert_eq!(ids, [256, 258, u32::from(b'a'), u32::from(b'b'), 259, 260, u32::from(b'\n')], "{pre}");
        assert_eq!(files.special_tokens["bos_token"], "<｜begin▁of▁sentence｜>");
        assert_eq!(GenerationSettings::from_gguf(&file).unwrap().eos, [257]);
        let (_, base) = load(&own);
        for case in json("words")["qwen2"].as_array().unwrap() {
            let text = case["text"].as_str().unwrap();
            let words = |t: &Tokenizer| t.encode(text, false).unwrap().get_word_ids().to_vec();
            assert_eq!(words(&tokenizer), words(&base), "{pre} {text:?}");
        }
    }
}

#[test]
fn merges_are_ranked_and_whole_words_may_go_first() {
    let more = [("ab", 1), ("bc", 1), ("abc", 1), ("<|im_end|>", 3), ("<tool>", 4)];
    let merges = ["b c", "a b", "x y", "a"];
    let file = |pre: &str| byte_level(pre, &merges, &more).u32("tokenizer.ggml.eos_token_id", 259).build();
    let encode = |pre: &str, text: &str| {
        let (_, tokenizer) = load(&Gguf::parse(file(pre)).unwrap());
        tokenizer.encode(text, false).unwrap().get_ids().to_vec()
    };
    // "b c" comes first, and nothing merges "a" with "bc".
    assert_eq!(encode("gpt-2", "abc"), [97, 257]);
    // Llama 3 takes a word that is a token whole.
    assert_eq!(encode("llama-bpe", "abc"), [258]);
    assert_eq!(encode("gpt-2", "ab<|im_end|><tool>c"), [256, 259, 260, 99]);
    let settings = GenerationSettings::from_gguf(&Gguf::parse(file("gpt-2")).unwrap()).unwrap();
    assert_eq!((settings.eos.as_slice(), settings.add_bos), (&[259][..], false));
}

#[test]
fn end_of_turn_tokens_are_found_by_role_and_by_text() {
    let more = [("<|end_of_text|>", 3), ("<|eot_id|>", 3), ("<|eom_id|>", 1), ("<|bos|>", 3)];
    let file = byte_level("llama-bpe", &[], &more)
        .u32("tokenizer.ggml.bos_token_id", 259)
        .u32("tokenizer.ggml.eos_token_id", 256)
        .u32("tokenizer.ggml.padding_token_id", 5000)
        .f32("general.sampling.temp", 0.5)
        .u32("general.sampling.top_k", 40)
        .build();
    let settings = GenerationSettings::from_gguf(&Gguf::parse(file).unwrap()).unwrap();
    // Not the third, which is not a control token.
    assert_eq!(settings.eos, [256, 257]);
    assert_eq!((settings.bos, settings.add_bos, settings.pad), (Some(259), true, None));
    assert_eq!((settings.temperature, settings.top_k, settings.top_p), (Some(0.5), Some(40), None));
}

#[test]
fn templates_of_gguf_metadata() {
    let file = byte_level("gpt-2", &[], &[])
        .str("tokenizer.chat_template", "plain")
        .strings("tokenizer.chat_templates", &["tool_use", "absent"])
        .str("tokenizer.chat_template.tool_use", "with tools")
        .build();
    let (files, _) = load(&Gguf::parse(file).unwrap());
    assert_eq!(files.chat_template.as_deref(), Some("plain"));
    assert_eq!(files.named_templates.into_iter().collect::<Vec<_>>(), [("tool_use".into(), "with tools".into())]);
}

#[track_caller]
fn refused(file: GgufBuilder, expected: &str) {
    let error = TokenizerFiles::from_gguf(&Gguf::parse(file.build()).unwrap()).unwrap_err().to_string();
    assert!(error.contains(expected), "{error:?} does not say {expected:?}");
}

#[test]
fn vocabularies_that_cannot_be_understood_are_refused() {
    refused(GgufBuilder::new(3), "tokenizer.ggml.tokens");
    refused(GgufBuilder::new(3).strings::<&str>("tokenizer.ggml.tokens", &[]), "0 tokens");
    refused(byte_level("nonsense", &[], &[]), "\"nonsense\" is not a way of cutting that is known: smollm");
    refused(byte_level("gpt-2", &[], &[("a", 1)]), "are both \"a\"");
    let tokens = GgufBuilder::new(3).strings("tokenizer.ggml.tokens", &["a", "b"]);
    refused(tokens.clone().str("tokenizer.ggml.model", "rwkv"), "known: gpt2, llama, t5");
    refused(tokens.clone().i32s("tokenizer.ggml.token_type", &[1]), "shorter than the 2 tokens");
    refused(tokens.clone().str("tokenizer.ggml.model", "gpt2"), "tokenizer.ggml.merges");
    refused(tokens.clone().str("tokenizer.ggml.model", "t5"), "unknown text");
    refused(
        GgufBuilder::new(3)
            .str("tokenizer.ggml.model", "llama")
            .strings("tokenizer.ggml.tokens", &["aa", "b"])
            .f32s("tokenizer.ggml.scores", &[f32::NAN, 0.0]),
        "score",
    );
    refused(GgufBuilder::new(3).strings("tokenizer.ggml.tokens", &["a".repeat(5000)]), "5000 bytes long");
    refused(tokens.clone().str("tokenizer.huggingface.json", "{}"), "not a tokenizer.json that can be loaded");
}

#[test]
fn tokens_that_are_not_utf8_keep_their_place() {
    let file = GgufBuilder::new(3)
        .str("tokenizer.ggml.model", "llama")
        .strings("tokenizer.ggml.tokens", &[&b"<unk>"[..], b"\xff\xfe", b"", b"x"])
        .i32s("tokenizer.ggml.token_type", &[2, 1, 1, 1]);
    let (_, tokenizer) = load(&Gguf::parse(file.bool("tokenizer.ggml.add_space_prefix", false).build()).unwrap());
    assert_eq!(tokenizer.encode("x", false).unwrap().get_ids(), [3]);
    assert_eq!(tokenizer.get_vocab_size(true), 4);
}
