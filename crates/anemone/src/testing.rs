//! What the unit tests share: fixtures, small tokenizers.

pub(crate) mod faulty;
pub(crate) mod scripted;

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::Tokenizer;

/// The bytes of a file of the fixtures, which lie beside the checkout or where `ANEMONE_FIXTURES` says.
pub(crate) fn fixture(name: &str) -> Vec<u8> {
    let folder = std::env::var_os("ANEMONE_FIXTURES")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures"), PathBuf::from);
    let path = folder.join(name);
    std::fs::read(&path).unwrap_or_else(|error| {
        panic!("{}: {error}; the fixtures must lie there, or set ANEMONE_FIXTURES to their folder", path.display())
    })
}

fn special(id: u32, content: &str) -> Value {
    json!({
        "id": id, "content": content, "special": true, "normalized": false,
        "single_word": false, "lstrip": false, "rstrip": false,
    })
}

/// GPT-2's alphabet: the character that stands for each byte.
pub(crate) fn byte_letters() -> Vec<char> {
    let mut next = 0x100;
    (0u32..256)
        .map(|byte| {
            let code = match byte {
                0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => byte,
                _ => {
                    next += 1;
                    next - 1
                }
            };
            char::from_u32(code).expect("below the surrogates")
        })
        .collect()
}

/// A byte-level tokenizer: `<|endoftext|>`, `<|im_start|>`, `<|im_end|>` (0–2), the 256 bytes (3–258), and a few merges.
pub(crate) fn byte_level() -> Tokenizer {
    Tokenizer::from_bytes(byte_level_json().as_bytes()).expect("a valid tokenizer")
}

/// Its `tokenizer.json`.
pub(crate) fn byte_level_json() -> String {
    const MERGES: [[&str; 2]; 12] = [
        ["h", "e"],
        ["l", "l"],
        ["he", "ll"],
        ["hell", "o"],
        ["Ġ", "w"],
        ["o", "r"],
        ["Ġw", "or"],
        ["l", "d"],
        ["Ġwor", "ld"],
        ["u", "s"],
        ["us", "e"],
        ["use", "r"],
    ];
    let mut vocabulary = serde_json::Map::new();
    let specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"];
    let letters = byte_letters().into_iter().map(String::from);
    let merged = MERGES.iter().map(|[left, right]| format!("{left}{right}"));
    for (id, token) in specials.into_iter().map(String::from).chain(letters).chain(merged).enumerate() {
        vocabulary.insert(token, json!(id));
    }
    let tokenizer = json!({
        "version": "1.0",
        "added_tokens": [special(0, specials[0]), special(1, specials[1]), special(2, specials[2])],
        "truncation": {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0},
        "padding": {
            "strategy": {"Fixed": 4_000_000_000u32}, "direction": "Right", "pad_to_multiple_of": null,
            "pad_id": 0, "pad_type_id": 0, "pad_token": "<|endoftext|>",
        },
        "normalizer": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "post_processor": null,
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
            "vocab": vocabulary, "merges": MERGES,
        },
    });
    tokenizer.to_string()
}

/// A SentencePiece-like tokenizer as Llama 2's: `<unk>`, `<s>`, `</s>` (0–2), 256 byte tokens (3–258), letters, `▁hi`.
/// `old_style` puts the leading space with a normalizer, otherwise with `Metaspace`.
pub(crate) fn sentence_piece(old_style: bool) -> Tokenizer {
    let mut vocabulary = serde_json::Map::new();
    let specials = ["<unk>", "<s>", "</s>"];
    let bytes = (0..256).map(|byte| format!("<0x{byte:02X}>"));
    let letters = "▁abcdefghijklmnopqrstuvwxyz".chars().map(String::from);
    let merged = ["▁h", "▁hi", "▁▁"].map(String::from);
    for (id, token) in specials.into_iter().map(String::from).chain(bytes).chain(letters).chain(merged).enumerate() {
        vocabulary.insert(token, json!(id));
    }
    let replace = json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"});
    let normalizer = json!({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, replace]});
    let metaspace = json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": false});
    let tokenizer = json!({
        "version": "1.0",
        "added_tokens": [special(0, specials[0]), special(1, specials[1]), special(2, specials[2])],
        "truncation": null, "padding": null,
        "normalizer": if old_style { normalizer } else { Value::Null },
        "pre_tokenizer": if old_style { Value::Null } else { metaspace },
        "post_processor": null,
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0},
        ]},
        "model": {
            "type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": true, "ignore_merges": false,
            "vocab": vocabulary, "merges": [["▁", "h"], ["▁h", "i"], ["▁", "▁"]],
        },
    });
    Tokenizer::from_bytes(tokenizer.to_string().as_bytes()).expect("a valid tokenizer")
}

/// A tokenizer whose decoder is none of those that are streamed piece by piece.
pub(crate) fn word_piece() -> Tokenizer {
    let tokenizer = json!({
        "version": "1.0", "added_tokens": [special(0, "[UNK]")], "truncation": null, "padding": null,
        "normalizer": null, "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null,
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {"[UNK]": 0, "play": 1, "##ing": 2, "do": 3, "n't": 4, ".": 5, "é": 6},
        },
    });
    Tokenizer::from_bytes(tokenizer.to_string().as_bytes()).expect("a valid tokenizer")
}
