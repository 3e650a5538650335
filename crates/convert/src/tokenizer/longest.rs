//! The longest text in a piece of JSON, found without keeping the JSON.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// What a value is like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Longest {
    /// Whether it is a list.
    pub(super) is_list: bool,
    /// Bytes of the longest text in it, however deep; keys do not count.
    pub(super) text: usize,
}

impl<'de> Deserialize<'de> for Longest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Look)
    }
}

struct Look;

impl<'de> Visitor<'de> for Look {
    type Value = Longest;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_str<E>(self, text: &str) -> Result<Longest, E> {
        Ok(Longest { is_list: false, text: text.len() })
    }

    fn visit_unit<E>(self) -> Result<Longest, E> {
        Ok(Longest::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Longest, E> {
        Ok(Longest::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Longest, E> {
        Ok(Longest::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Longest, E> {
        Ok(Longest::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Longest, E> {
        Ok(Longest::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Longest, A::Error> {
        let mut text = 0;
        while let Some(element) = list.next_element::<Longest>()? {
            text = text.max(element.text);
        }
        Ok(Longest { is_list: true, text })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Longest, A::Error> {
        let mut text = 0;
        while let Some((_, value)) = map.next_entry::<IgnoredAny, Longest>()? {
            text = text.max(value.text);
        }
        Ok(Longest { is_list: false, text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_into_everything() {
        let of = |json: &str| serde_json::from_str::<Longest>(json).unwrap();
        assert_eq!(
            of(r#"[["ab", -1.5], ["abcd", 2], [null, true, {"k": "abcde"}]]"#),
            Longest { is_list: true, text: 5 }
        );
        assert_eq!(of(r#"{"a long key": 1}"#), Longest { is_list: false, text: 0 });
    }
}
