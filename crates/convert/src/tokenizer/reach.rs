//! Whether the ids of a tokenizer have rows in a model's embedding.

use std::fmt;
use std::path::Path;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::limits::MAX_TOKENS;
use crate::error::{ConvertError, Result};

/// The tokens that are told of.
const MAX_TOLD: usize = 8;

/// Checks the ids of `tokenizer.json` (`json`; `path` is for errors) against an embedding of `rows` rows. Returns the texts
/// of tokens that were added to the vocabulary and have no row: those of pictures in models that see, for one. Nothing makes
/// them out of ordinary text.
///
/// # Errors
/// [`ConvertError::Tokenizer`] if a token of the vocabulary itself has no row.
pub(crate) fn check(path: &Path, json: &str, rows: usize) -> Result<Vec<String>> {
    #[derive(Deserialize)]
    struct Added {
        id: u64,
        content: String,
    }
    #[derive(Deserialize)]
    struct Model {
        vocab: Option<Ids>,
    }
    #[derive(Deserialize)]
    struct Part {
        model: Option<Model>,
        #[serde(default)]
        added_tokens: Vec<Added>,
    }
    let part: Part = serde_json::from_str(json)
        .map_err(|e| ConvertError::tokenizer(path, format!("{e}; copy or download it again")))?;
    let added = |id: u64| part.added_tokens.iter().any(|token| token.id == id);
    let ids = part.model.and_then(|model| model.vocab).map_or(Vec::new(), |ids| ids.0);
    if let Some(id) = ids.into_iter().find(|&id| id >= rows as u64 && !added(id)) {
        let problem = format!("it has a token {id}, but the model's embedding has {rows} rows");
        return Err(ConvertError::tokenizer(path, problem));
    }
    let without = part.added_tokens.into_iter().filter(|token| token.id >= rows as u64);
    Ok(without.take(MAX_TOLD).map(|token| token.content).collect())
}

/// The ids of a vocabulary: of a map from texts to ids, or of a list of tokens.
struct Ids(Vec<u64>);

impl<'de> Deserialize<'de> for Ids {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Look).map(Self)
    }
}

struct Look;

impl<'de> Visitor<'de> for Look {
    type Value = Vec<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a map of ids or a list of tokens, at most {MAX_TOKENS}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<u64>, A::Error> {
        let mut ids = Vec::new();
        while let Some((_, id)) = map.next_entry::<IgnoredAny, u64>()? {
            ids.push(id);
            if ids.len() > MAX_TOKENS {
                return Err(A::Error::invalid_length(ids.len(), &self));
            }
        }
        Ok(ids)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<u64>, A::Error> {
        let mut count = 0;
        while list.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
            if count > MAX_TOKENS {
                return Err(A::Error::invalid_length(count, &self));
            }
        }
        Ok((0..count as u64).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(vocab: &str, added: &str, rows: usize) -> std::result::Result<Vec<String>, String> {
        let json = format!("{{\"model\": {{\"vocab\": {vocab}}}, \"added_tokens\": [{added}]}}");
        super::check(Path::new("t"), &json, rows).map_err(|e| e.to_string())
    }

    #[test]
    fn ids_beyond_the_embedding() {
        let map = "{\"a\": 0, \"b\": 2}";
        assert_eq!(check(map, "", 3), Ok(vec![]));
        assert!(check(map, "", 2).unwrap_err().contains("a token 2, but the model's embedding has 2 rows"));
        assert_eq!(check(map, "{\"id\": 2, \"content\": \"<image>\"}", 2), Ok(vec!["<image>".to_owned()]));
        let list = "[[\"a\", -1.0], [\"b\", -2.0]]";
        assert_eq!(check(list, "", 2), Ok(vec![]));
        assert!(check(list, "", 1).is_err());
    }
}
