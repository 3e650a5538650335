//! The short way to a tokenizer of byte pairs. The `tokenizers` crate takes the model's part of a `tokenizer.json` through
//! three trees of JSON, a tenth of a second for a vocabulary of 49 000, and keeps it in hash tables. Here the vocabulary and the
//! merges go straight to where they stay, a model of our own ([`Pairs`]), and the crate reads the rest of the file as ever,
//! beside a model of the added tokens alone.
//!
//! Whatever is not as usual is left to the crate's own way and its own model, which has the errors too.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value, json};

use super::model::{Model, Tokenizer};
use super::pairs::{Listed, Options, Pairs, Words};

/// A `tokenizer.json` with a model of byte pairs.
#[derive(Deserialize)]
pub(super) struct Document {
    model: BytePairs,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BytePairs {
    r#type: String,
    dropout: Option<f32>,
    unk_token: Option<String>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
    fuse_unk: Option<bool>,
    byte_fallback: Option<bool>,
    ignore_merges: Option<bool>,
    vocab: Vocabulary,
    merges: Merges,
}

/// Puts a text in place of what is there.
struct Text<'a>(&'a mut String);

impl<'de> DeserializeSeed<'de> for Text<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Text<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.0.clear();
        self.0.push_str(text);
        Ok(())
    }
}

/// Words with their ids.
#[derive(Default)]
struct Vocabulary(Listed);

impl<'de> Deserialize<'de> for Vocabulary {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Self::default())
    }
}

impl<'de> Visitor<'de> for Vocabulary {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("words with their ids")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self, A::Error> {
        let mut word = String::new();
        while let Some(()) = map.next_key_seed(Text(&mut word))? {
            if !self.0.push(&word, map.next_value()?) {
                return Err(A::Error::custom("more than 4 GiB of words"));
            }
        }
        Ok(self)
    }
}

/// Pairs in order of rank: one text after the other, two for each.
#[derive(Default)]
struct Merges {
    text: String,
    ends: Vec<usize>,
}

impl Merges {
    fn push(&mut self, [first, second]: [&str; 2]) {
        for part in [first, second] {
            self.text.push_str(part);
            self.ends.push(self.text.len());
        }
    }

    fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let starts = std::iter::once(0).chain(self.ends.iter().skip(1).step_by(2).copied());
        let ends = self.ends.as_chunks::<2>().0;
        starts.zip(ends).map(|(start, &[middle, end])| (&self.text[start..middle], &self.text[middle..end]))
    }
}

impl<'de> Deserialize<'de> for Merges {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Merges;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("pairs, all of one form")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Merges, A::Error> {
                let (mut all, mut form, mut parts) = (Merges::default(), None, [String::new(), String::new()]);
                while let Some(found) = list.next_element_seed(Merge(&mut all, &mut parts))? {
                    if *form.get_or_insert(found) != found {
                        return Err(A::Error::custom("pairs of both forms"));
                    }
                }
                Ok(all)
            }
        }
        deserializer.deserialize_seq(All)
    }
}

/// One of them is added: a list of two, or a text with a space between them.
struct Merge<'a>(&'a mut Merges, &'a mut [String; 2]);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    List,
    Text,
}

impl<'de> DeserializeSeed<'de> for Merge<'_> {
    type Value = Form;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Form, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Merge<'_> {
    type Value = Form;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a pair")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Form, E> {
        // A line that only tells a version.
        if !text.starts_with("#version") {
            let pair = text.split_once(' ').filter(|(_, second)| !second.contains(' '));
            let (first, second) = pair.ok_or_else(|| E::custom("not two parts"))?;
            self.0.push([first, second]);
        }
        Ok(Form::Text)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Form, A::Error> {
        let [first, second] = self.1;
        let found = [list.next_element_seed(Text(first))?, list.next_element_seed(Text(second))?];
        if found.contains(&None) || list.next_element::<String>()?.is_some() {
            return Err(A::Error::custom("not two parts"));
        }
        self.0.push([first, second]);
        Ok(Form::List)
    }
}

impl Document {
    /// The document, if it has a model of byte pairs as they usually are.
    pub(super) fn parse(json: &str) -> Option<Self> {
        let document = serde_json::from_str::<Self>(json).ok()?;
        let model = &document.model;
        let plain = model.dropout.is_none()
            && model.continuing_subword_prefix.as_ref().is_none_or(String::is_empty)
            && model.end_of_word_suffix.as_ref().is_none_or(String::is_empty);
        (model.r#type == "BPE" && plain).then_some(document)
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
        let words = Words::new(&model.vocab.0).ok_or("a vocabulary of another kind")?;
        drop(model.vocab);
        let added = added(&rest, &words).ok_or("added tokens of another form")?;
        rest.insert("model".to_owned(), json!({"type": "BPE", "vocab": added, "merges": []}));
        let mut tokenizer: Tokenizer = Value::Object(rest).to_string().parse()?;
        let unknown =
            model.unk_token.map(|token| words.id(&token).ok_or("no token for what is unknown")).transpose()?;
        let options = Options {
            unknown,
            fuse_unknown: model.fuse_unk.unwrap_or_default(),
            byte_fallback: model.byte_fallback.unwrap_or_default(),
            ignore_merges: model.ignore_merges.unwrap_or_default(),
        };
        let pairs = Pairs::new(words, model.merges.iter(), options).ok_or("merges that are not of words")?;
        tokenizer.with_model(Model::from(pairs));
        Ok(tokenizer)
    }
}

/// The ids that added tokens get: those of the vocabulary, and the next ones for those that are not in it.
fn added(rest: &Map<String, Value>, vocabulary: &Words) -> Option<Map<String, Value>> {
    let mut ids = Map::new();
    let Some(tokens) = rest.get("added_tokens") else { return Some(ids) };
    let mut next = u32::try_from(vocabulary.len()).ok()?;
    for token in tokens.as_array()? {
        let content = token.get("content")?.as_str()?;
        if content.is_empty() || ids.contains_key(content) {
            continue;
        }
        let id = vocabulary.id(content).unwrap_or_else(|| {
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

    /// Both ways to it; what both have beside the model.
    fn both(json: &Value) -> [Value; 2] {
        let text = json.to_string();
        let quick = Document::parse(&text).expect("byte pairs").load().expect("it can be loaded");
        let slow: Tokenizer = text.parse().unwrap();
        for text in ["abab b<s>ab", "  a bb\n<extra>", "ä<more>a", ""] {
            let [a, b] = [&quick, &slow].map(|t| t.encode(text, true).unwrap());
            assert_eq!(a, b, "{text:?}");
            assert_eq!(quick.decode(a.get_ids(), false).unwrap(), slow.decode(b.get_ids(), false).unwrap());
        }
        assert_eq!(quick.get_vocab(true), slow.get_vocab(true));
        [quick, slow].map(|t| {
            let rest = (t.get_normalizer(), t.get_pre_tokenizer(), t.get_post_processor(), t.get_decoder());
            json!([rest, t.get_added_vocabulary(), t.get_truncation(), t.get_padding(), t.get_vocab_size(true)])
        })
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
            json!({"type": "BPE", "vocab": vocab, "merges": [["a", 1]]}),
            json!({"type": "BPE", "vocab": vocab, "merges": [["a"]]}),
            json!({"type": "BPE", "vocab": vocab, "merges": [], "dropout": 0.5}),
            json!({"type": "BPE", "vocab": vocab, "merges": [], "end_of_word_suffix": "</w>"}),
            json!({"type": "BPE", "vocab": vocab, "merges": [], "continuing_subword_prefix": "##"}),
        ] {
            assert!(Document::parse(&tokenizer(&model).to_string()).is_none(), "{model}");
        }
        for model in [
            json!({"type": "BPE", "vocab": vocab, "merges": [["b", "a"]]}),
            json!({"type": "BPE", "vocab": vocab, "merges": [], "unk_token": "<unk>"}),
            json!({"type": "BPE", "vocab": {"a": 0, "b": 0}, "merges": []}),
        ] {
            assert!(Document::parse(&tokenizer(&model).to_string()).unwrap().load().is_err(), "{model}");
        }
    }
}
