//! How much longer a tokenizer makes what it is given: a file from outside must not make much of little.

use serde_json::Value;

use super::{Tokenizer, character_map};

/// How many times as long a normalizer may make a text, and a decoder the text of a token.
pub(super) const MAX_GROWTH: u64 = 1 << 16;
const MAX_DECODER_GROWTH: u64 = 1 << 8;
/// What a normalizer may make of one text, in bytes.
const BUDGET: u64 = 256 << 20;

/// The longest text, in bytes, that may be encoded at once: longer ones could become too long on the way.
#[must_use]
pub fn longest_text(tokenizer: &Tokenizer) -> usize {
    let normalizer = tokenizer.get_normalizer().and_then(|normalizer| serde_json::to_value(normalizer).ok());
    let growth = normalizer.as_ref().map_or(1, of);
    usize::try_from(BUDGET / growth.max(1)).unwrap_or(usize::MAX)
}

/// Refuses a normalizer or decoder, as `tokenizer.json` has them, that would grow its input too much.
pub(super) fn check(normalizer: Option<&Value>, decoder: Option<&Value>) -> Result<(), String> {
    for (part, what, limit) in [(normalizer, "normalizer", MAX_GROWTH), (decoder, "decoder", MAX_DECODER_GROWTH)] {
        if part.map_or(1, of) > limit {
            return Err(format!("its {what} can make a text over {limit} times as long"));
        }
    }
    Ok(())
}

/// How many times as long a part can make a text, at most.
fn of(part: &Value) -> u64 {
    let length = |key: &str| part[key].as_str().map_or(0, |text| text.len() as u64);
    let own = match part["type"].as_str().unwrap_or_default() {
        "Replace" => match part["pattern"]["String"].as_str() {
            Some(pattern) if !pattern.is_empty() => length("content").div_ceil(pattern.len() as u64).max(1),
            // A match may be empty.
            _ => length("content") + 1,
        },
        // Texts are not empty.
        "Prepend" => length("prepend") + 1,
        "Precompiled" => character_map::longest_text(&part["precompiled_charsmap"]) + 1,
        // The Unicode forms: three times for the canonical, 18 times (in UTF-16, 11 in UTF-8) for the compatible ones
        // (https://www.unicode.org/faq/normalization.html).
        "NFC" | "NFD" => 3,
        "NFKC" | "NFKD" => 11,
        // Spaces around characters, then lower case, then the canonical form.
        "BertNormalizer" => 8,
        "Lowercase" | "ByteLevel" => 2,
        _ => 1,
    };
    let steps = ["normalizers", "decoders"].into_iter().filter_map(|key| part[key].as_array()).flatten();
    steps.map(of).fold(own, u64::saturating_mul)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sequence(key: &str, step: &Value, n: usize) -> Value {
        json!({"type": "Sequence", key: vec![step; n]})
    }

    #[test]
    fn steps_multiply() {
        let usual = json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"});
        assert_eq!(of(&usual), 3);
        let llama = json!({"normalizers": [{"type": "Prepend", "prepend": "▁"}, usual]});
        assert_eq!(of(&llama), 12);
        let bomb = json!({"type": "Replace", "pattern": {"Regex": "."}, "content": "aaaaaaaaaaaaaaa"});
        let normalizers = |n| sequence("normalizers", &bomb, n);
        let decoders = |n| sequence("decoders", &bomb, n);
        assert_eq!(of(&normalizers(4)), 1 << 16);
        assert!(check(Some(&normalizers(4)), None).is_ok() && check(Some(&normalizers(5)), None).is_err());
        assert!(check(None, Some(&decoders(2))).is_ok() && check(None, Some(&decoders(3))).is_err());
        assert_eq!(of(&normalizers(1000)), u64::MAX);
        assert_eq!(of(&json!({"type": "NFC"})), 3);
        assert_eq!(of(&json!(7)), 1);
    }
}
