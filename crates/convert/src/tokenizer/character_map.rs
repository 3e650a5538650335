//! Checks of SentencePiece's compiled character map, whose reader in the `tokenizers` crate trusts it.
//!
//! The map is a length in bytes (`u32`), a double-array trie of `u32` units that long, and replacement texts, each ended
//! by a zero byte. A walk that starts anywhere in the trie, with any byte, must stay in it, and what it finds must be the
//! beginning of a text. (Format: `sentencepiece/src/normalizer.cc` and the Darts-clone trie that it holds.)

use serde_json::Value;

/// The largest map, in bytes. (That of NFKC, the usual one, has about 240 000.)
const MAX_BYTES: usize = 16 << 20;

/// Checks every map in the normalizer of a `tokenizer.json`, where they are written in base 64.
pub(super) fn check_all(normalizer: &Value) -> Result<(), String> {
    match normalizer {
        Value::Object(map) => map.iter().try_for_each(|(key, value)| match value.as_str() {
            Some(text) if key == "precompiled_charsmap" => {
                check(&from_base64(text).ok_or("a map that is not base 64")?)
            }
            _ => check_all(value),
        }),
        Value::Array(list) => list.iter().try_for_each(check_all),
        _ => Ok(()),
    }
}

/// The longest text, in bytes, that a map (in base 64) can put in place of another. Zero of one that is none.
pub(super) fn longest_text(map: &Value) -> u64 {
    let bytes = map.as_str().and_then(from_base64).unwrap_or_default();
    let texts =
        bytes.split_first_chunk::<4>().and_then(|(length, rest)| rest.get(u32::from_le_bytes(*length) as usize..));
    texts.unwrap_or_default().split(|byte| *byte == 0).map(<[u8]>::len).max().unwrap_or(0) as u64
}

/// Bytes from padded base 64 of the usual alphabet.
fn from_base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3);
    let (mut bits, mut count) = (0u32, 0);
    for digit in digits {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Some(bytes)
}

/// Refuses a map on which a look-up could leave the trie or the texts.
pub(super) fn check(map: &[u8]) -> Result<(), String> {
    if map.len() > MAX_BYTES {
        return Err(format!("{} bytes; at most {MAX_BYTES} are read", map.len()));
    }
    let (length, rest) = map.split_first_chunk::<4>().ok_or("shorter than its own length field")?;
    let length = u32::from_le_bytes(*length) as usize;
    if !length.is_multiple_of(4) || length == 0 || length > rest.len() {
        return Err(format!("a trie of {length} bytes in a map of {}", map.len()));
    }
    let (trie, texts) = rest.split_at(length);
    let texts = std::str::from_utf8(texts).map_err(|e| format!("its texts are not UTF-8: {e}"))?;
    let units: Vec<usize> = trie.as_chunks::<4>().0.iter().map(|unit| u32::from_le_bytes(*unit) as usize).collect();
    // Bytes of a key change the lowest eight bits of a place only, so whole pages of 256 are needed.
    if !units.len().is_multiple_of(256) {
        return Err(format!("a trie of {} units, which are not whole pages of 256", units.len()));
    }
    let mut seen = vec![false; units.len()];
    let mut open = vec![offset(units[0])];
    while let Some(base) = open.pop() {
        match seen.get_mut(base) {
            None => return Err(format!("the trie leads to unit {base} of {}", units.len())),
            Some(seen) if *seen => continue,
            Some(seen) => *seen = true,
        }
        for byte in 1..=255 {
            let place = base ^ byte;
            let unit = units[place];
            // The upper bit marks a value; such a unit has no label.
            if unit & (1 << 31 | 0xff) != byte {
                continue;
            }
            let next = place ^ offset(unit);
            if unit >> 8 & 1 == 1 {
                let value = units.get(next).map(|leaf| leaf & ((1 << 31) - 1));
                if !value.is_some_and(|value| texts.is_char_boundary(value)) {
                    return Err(format!("unit {place} of the trie leads to no text"));
                }
            }
            open.push(next);
        }
    }
    Ok(())
}

fn offset(unit: usize) -> usize {
    (unit >> 10) << ((unit & (1 << 9)) >> 6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_64() {
        for (text, expected) in
            [("", &b""[..]), ("QQ==", b"A"), ("QUI=", b"AB"), ("QUJD", b"ABC"), ("+/+/", &[0xfb, 0xff, 0xbf])]
        {
            assert_eq!(from_base64(text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(from_base64("Q Q="), None);
    }

    fn base64(bytes: &[u8]) -> String {
        const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let bits: Vec<u8> = bytes.iter().flat_map(|byte| (0..8).rev().map(move |i| byte >> i & 1)).collect();
        let digit = |six: &[u8]| six.iter().chain(&[0; 5]).take(6).fold(0, |n, bit| n << 1 | usize::from(*bit));
        bits.chunks(6).map(|six| char::from(DIGITS[digit(six)])).collect()
    }

    fn map(units: &[(usize, u32)], texts: &[u8]) -> Vec<u8> {
        let mut trie = [0u32; 256];
        for (place, unit) in units {
            trie[*place] = *unit;
        }
        let mut map = 1024u32.to_le_bytes().to_vec();
        map.extend(trie.iter().flat_map(|unit| unit.to_le_bytes()));
        map.extend(texts);
        map
    }

    #[test]
    fn look_ups_that_would_leave_the_map_are_refused() {
        // "a" (97) leads from the root to a leaf at 97 ^ 64 with the value 0.
        let unit = |offset: u32| offset << 10 | 1 << 8 | 97;
        assert_eq!(check(&map(&[(97, unit(64))], b"b\0")), Ok(()));
        assert!(check(&map(&[(97, unit(1 << 12))], b"b\0")).is_err(), "outside the trie");
        assert!(check(&map(&[(97, unit(64)), (97 ^ 64, 1 << 31 | 5)], b"b\0")).is_err(), "outside the texts");
        assert!(
            check(&map(&[(97, unit(64)), (97 ^ 64, 1 << 31 | 1)], "ü\0".as_bytes())).is_err(),
            "within a character"
        );
        assert!(check(&map(&[(0, 1 << 20)], b"")).is_err(), "the root leads outside");
        assert!(check(b"abc").is_err() && check(&[0; 4]).is_err() && check(&[8, 0, 0, 0, 1]).is_err());
        let longest = |map: &[u8]| longest_text(&Value::from(base64(map)));
        assert_eq!(longest(&map(&[], b"b\0abc\0de")), 3);
        assert_eq!(longest(b"abc"), 0);
        let value = serde_json::json!({"normalizers": [{"type": "Precompiled", "precompiled_charsmap": "AAAA"}]});
        assert!(check_all(&value).is_err());
    }
}
