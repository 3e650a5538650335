//! The short way to a tokenizer of byte pairs. The `tokenizers` crate takes the model's part of a `tokenizer.json` through
//! three trees of JSON, a tenth of a second for a vocabulary of 49 000. Here the vocabulary and the merges go straight to
//! where they stay, and the crate reads the rest of the file as ever, beside a model of the added tokens alone.
//!
//! Whatever is not as usual is left to the crate's own way, which has the errors too.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde_json::{Map, Value, json};
use tokenizers::Tokenizer;
use tokenizers::models::bpe::{BPE, Vocab};

/// A `tokenizer.json` with a model of byte pairs.
#[derive(Deserialize)]
pub(super) struct Document {
    model: Model,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Model {
    r#type: String,
    dropout: Option<f32>,
    unk_token: Option<String>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
    fuse_unk: Option<bool>,
    byte_fallback: Option<bool>,
    ignore_merges: Option<bool>,
    vocab: Vocab,
    merges: Merges,
}

/// Pairs in order of rank.
struct Merges(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Merges {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Merges;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("pairs, all of one form")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Merges, A::Error> {
                let (mut all, mut texts) = (Vec::new(), None);
                while let Some(Merge { pair, text }) = list.next_element()? {
                    if *texts.get_or_insert(text) != text {
                        return Err(A::Error::custom("pairs of both forms"));
                    }
                    all.extend(pair);
                }
                Ok(Merges(all))
            }
        }
        deserializer.deserialize_seq(All)
    }
}

/// One of them: a list of two, or a text with a space between them.
struct Merge {
    /// None for a line that only tells a version.
    pair: Option<(String, String)>,
    text: bool,
}

impl<'de> Deserialize<'de> for Merge {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct One;
        impl<'de> Visitor<'de> for One {
            type Value = Merge;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a pair")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Merge, E> {
                if text.starts_with("#version") {
                    return Ok(Merge { pair: None, text: true });
                }
                let pair = text.split_once(' ').filter(|(_, second)| !second.contains(' '));
                let (first, second) = pair.ok_or_else(|| E::custom("not two parts"))?;
                Ok(Merge { pair: Some((first.to_owned(), second.to_owned())), text: true })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Merge, A::Error> {
                let (first, second) = (list.next_element()?, list.next_element()?);
                match (first, second, list.next_element::<String>()?) {
                    (Some(first), Some(second), None) => Ok(Merge { pair: Some((first, second)), text: false }),
                    _ => Err(A::Error::custom("not two parts")),
                }
            }
        }
        deserializer.deserialize_any(One)
    }
}

impl Document {
    /// The document, if it has a model of byte pairs as they usually are.
    pub(super) fn parse(json: &str) -> Option<Self> {
        serde_json::from_str::<Self>(json).ok().filter(|document| document.model.r#type == "BPE")
    }

    /// What is beside the model, by its name.
    pub(super) fn part(&self, name: &str) -> Option<&Value> {
        self.rest.get(name).filter(|value| !value.is_null())
    }

    /// The tokenizer.
    ///
    /// # Errors
    /// What is not as usual, or what the crate does not load; it may panic too.
    pub(super) fn load(self) -> Result<Tokenizer, tokenizers::Error> {
        let Self { model, mut rest } = self;
        let added = added(&rest, &model.vocab).ok_or("added tokens of another form")?;
        rest.insert("model".to_owned(), json!({"type": "BPE", "vocab": added, "merges": []}));
        let mut tokenizer: Tokenizer = Value::Object(rest).to_string().parse()?;
        let mut bpe = BPE::builder().vocab_and_merges(model.vocab, model.merges.0);
        if let Some(dropout) = model.dropout {
            bpe = bpe.dropout(dropout);
        }
        if let Some(token) = model.unk_token {
            bpe = bpe.unk_token(token);
        }
        if let Some(prefix) = model.continuing_subword_prefix {
            bpe = bpe.continuing_subword_prefix(prefix);
        }
        if let Some(suffix) = model.end_of_word_suffix {
            bpe = bpe.end_of_word_suffix(suffix);
        }
        bpe = bpe.fuse_unk(model.fuse_unk.unwrap_or_default());
        bpe = bpe.byte_fallback(model.byte_fallback.unwrap_or_default());
        bpe = bpe.ignore_merges(model.ignore_merges.unwrap_or_default());
        tokenizer.with_model(bpe.build()?);
        Ok(tokenizer)
    }
}

/// The ids that added tokens get: those of the vocabulary, and the next ones for those that are not in it.
fn added(rest: &Map<String, Value>, vocabulary: &Vocab) -> Option<Map<String, Value>> {
    let mut ids = Map::new();
    let Some(tokens) = rest.get("added_tokens") else { return Some(ids) };
    let mut next = u32::try_from(vocabulary.len()).ok()?;
    for token in tokens.as_array()? {
        let content = token.get("content")?.as_str()?;
        if content.is_empty() || ids.contains_key(content) {
            continue;
        }
        let id = vocabulary.get(content).copied().unwrap_or_else(|| {
            next += 1;
            next - 1
        });
        ids.insert(content.to_owned(), id.into());
    }
    Some(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ways to it.
    fn both(json: &Value) -> [String; 2] {
        let text = json.to_string();
        let quick = Document::parse(&text).expect("byte pairs").load().expect("it can be loaded");
        let slow: Tokenizer = text.parse().unwrap();
        for text in ["abab b<s>ab", "  a bb\n<extra>", "ä<more>a", ""] {
            let [a, b] = [&quick, &slow].map(|t| t.encode(text, true).unwrap());
            assert_eq!((a.get_ids(), a.get_tokens()), (b.get_ids(), b.get_tokens()), "{text:?}");
        }
        assert_eq!(quick.get_vocab(true), slow.get_vocab(true));
        [quick, slow].map(|t| serde_json::to_string(&t).unwrap())
    }

    fn token(id: u32, content: &str) -> Value {
        json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
               "normalized": false, "special": id != 9})
    }

    fn tokenizer(model: &Value) -> Value {
        json!({"version": "1.0", "truncation": null, "padding": null,
               "added_tokens": [token(0, "<s>"), token(9, "<extra>"), token(7, "<more>"), token(0, "<s>")],
               "normalizer": {"type": "Lowercase"},
               "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
               "post_processor": null,
               "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
               "model": model})
    }

    #[test]
    fn both_ways_lead_to_the_same_tokenizer() {
        let vocab = json!({"<s>": 0, "a": 1, "b": 2, "ab": 3, "abab": 4, "Ġ": 5, "<unk>": 6});
        let lists = json!([["a", "b"], ["ab", "ab"]]);
        for (merges, more) in [
            (lists.clone(), json!({})),
            (json!(["#version: 0.2", "a b", "ab ab"]), json!({"dropout": null, "unk_token": null})),
            (lists, json!({"unk_token": "<unk>", "fuse_unk": true, "byte_fallback": false, "ignore_merges": true})),
        ] {
            let mut model = json!({"type": "BPE", "vocab": vocab, "merges": merges});
            model.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let [quick, slow] = both(&tokenizer(&model));
            assert_eq!(quick, slow);
        }
    }

    #[test]
    fn the_tiny_model_has_the_same_tokenizer_both_ways() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../goldens/tiny/model/tokenizer.json");
        let [quick, slow] = both(&serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap());
        assert_eq!(quick, slow);
    }

    #[test]
    fn what_is_not_as_usual_is_left_to_the_crate() {
        let vocab = json!({"a": 0, "b": 1, "ab": 2});
        for model in [
            json!({"type": "WordLevel", "vocab": vocab, "unk_token": "a"}),
            json!({"vocab": vocab, "merges": [["a", "b"]]}),
            json!({"type": "BPE", "vocab": vocab, "merges": [["a", "b"], "a b"]}),
            json!({"type": "BPE", "vocab": vocab, "merges": ["a b c"]}),
            json!({"type": "BPE", "vocab": vocab, "merges": [], "novel": 1}),
        ] {
            assert!(Document::parse(&tokenizer(&model).to_string()).is_none(), "{model}");
        }
        let unknown = json!({"type": "BPE", "vocab": vocab, "merges": [["b", "a"]]});
        assert!(Document::parse(&tokenizer(&unknown).to_string()).unwrap().load().is_err());
    }
}
