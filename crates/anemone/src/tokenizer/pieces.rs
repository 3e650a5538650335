//! What each token contributes to a text, and how contributions become text.

use anemone_convert::tokenizer::Tokenizer as Inner;

use crate::{Error, Result};

const SPECIAL: u8 = 1;
const BYTE: u8 = 2;
const MISSING: u8 = 4;

/// The bytes of every token, in one table, and the rule that joins them.
#[derive(Debug)]
pub(crate) struct Pieces {
    decoding: Decoding,
    bytes: Vec<u8>,
    /// End of each token's bytes; the beginning is the end of the one before.
    ends: Vec<u32>,
    flags: Vec<u8>,
}

/// How the bytes of tokens become text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Decoding {
    /// They are UTF-8 when joined; what isn't becomes U+FFFD.
    Bytes,
    /// Each is a text in which `mark` stands for a space. With byte fallback, runs of byte tokens are UTF-8 when joined.
    Marked { mark: char, strip: Strip },
    /// Only the tokenizer's own decoder knows, given all tokens.
    Whole,
}

/// What is left out at the beginning of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Strip {
    /// So many spaces.
    Spaces(usize),
    /// All marks of the first token.
    FirstToken,
}

impl Pieces {
    /// Builds the table; ids at or over `limit` are refused.
    pub(crate) fn new(tokenizer: &Inner, limit: u32) -> Result<Self> {
        let problem = |problem: String| Error::Tokenizer { problem };
        let (decoding, byte_fallback) = match tokenizer.get_decoder() {
            Some(decoder) => {
                let decoder = serde_json::to_value(decoder).map_err(|error| problem(error.to_string()))?;
                decoding(&decoder)
            }
            None => (Decoding::Whole, false),
        };
        let added = tokenizer.get_added_vocabulary();
        let token = |id| added.simple_id_to_token(id).or_else(|| tokenizer.id_to_token(id));
        let count = tokenizer.get_vocab_size(true);
        let whole = u32::try_from(count).ok().filter(|&count| count <= limit);
        let mut tokens: Vec<Option<String>> = whole.map_or_else(Vec::new, |count| (0..count).map(token).collect());
        // As many ids as tokens, all from 0 on: there are no others. Else the largest must be looked for, in a copy of it all.
        if whole.is_none() || tokens.iter().any(Option::is_none) {
            let length = tokenizer.get_vocab(true).values().max().map_or(0, |&id| id as usize + 1);
            if length > limit as usize {
                return Err(problem(format!("its largest token id is {}; ids must be below {limit}", length - 1)));
            }
            tokens = (0..length as u32).map(token).collect();
        }
        let length = tokens.len();
        let mut pieces =
            Self { decoding, bytes: Vec::new(), ends: Vec::with_capacity(length), flags: Vec::with_capacity(length) };
        for token in tokens {
            let flags = match &token {
                Some(token) => {
                    let special = if added.is_special_token(token) { SPECIAL } else { 0 };
                    special | pieces.append(token, byte_fallback)
                }
                None => MISSING,
            };
            let end = u32::try_from(pieces.bytes.len())
                .map_err(|_| problem("its tokens are longer than 4 GiB together".into()))?;
            pieces.ends.push(end);
            pieces.flags.push(flags);
        }
        pieces.bytes.shrink_to_fit();
        Ok(pieces)
    }

    fn append(&mut self, token: &str, byte_fallback: bool) -> u8 {
        if self.decoding == Decoding::Bytes {
            let start = self.bytes.len();
            for c in token.chars() {
                match byte_of(c) {
                    Some(byte) => self.bytes.push(byte),
                    None => {
                        self.bytes.truncate(start);
                        self.bytes.extend_from_slice(token.as_bytes());
                        break;
                    }
                }
            }
            return 0;
        }
        let hex = token.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>')).filter(|hex| hex.len() == 2);
        if let Some(byte) = hex.filter(|_| byte_fallback).and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            self.bytes.push(byte);
            return BYTE;
        }
        self.bytes.extend_from_slice(token.as_bytes());
        0
    }

    pub(crate) fn decoding(&self) -> &Decoding {
        &self.decoding
    }

    /// One more than the largest token id.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn is_special(&self, id: u32) -> bool {
        self.flag(id, SPECIAL)
    }

    /// Whether the token stands for a single byte of a character that has no token of its own.
    pub(crate) fn is_byte(&self, id: u32) -> bool {
        self.flag(id, BYTE)
    }

    /// Whether the token adds to a text: it is in the vocabulary and not special.
    pub(crate) fn has_text(&self, id: u32) -> bool {
        (id as usize) < self.len() && !self.flag(id, SPECIAL | MISSING)
    }

    /// The token's bytes; of a token that [`has_text`](Self::has_text).
    pub(crate) fn bytes(&self, id: u32) -> &[u8] {
        let id = id as usize;
        let start = if id == 0 { 0 } else { self.ends[id - 1] as usize };
        &self.bytes[start..self.ends[id] as usize]
    }

    fn flag(&self, id: u32, flag: u8) -> bool {
        self.flags.get(id as usize).is_some_and(|flags| flags & flag != 0)
    }
}

/// Recognizes a decoder from its JSON; also whether it has byte fallback.
fn decoding(decoder: &serde_json::Value) -> (Decoding, bool) {
    let kind = |step: &serde_json::Value| step["type"].as_str().unwrap_or_default().to_owned();
    let single = |text: &serde_json::Value| {
        let mut chars = text.as_str()?.chars();
        chars.next().filter(|_| chars.next().is_none())
    };
    match kind(decoder).as_str() {
        "ByteLevel" => return (Decoding::Bytes, false),
        "Metaspace" => {
            if let Some(mark) = single(&decoder["replacement"]) {
                let never = decoder["prepend_scheme"] == "never";
                let strip = if never { Strip::Spaces(0) } else { Strip::FirstToken };
                return (Decoding::Marked { mark, strip }, false);
            }
        }
        "Sequence" => {
            let steps = decoder["decoders"].as_array().cloned().unwrap_or_default();
            let kinds: Vec<String> = steps.iter().map(kind).collect();
            let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
            match kinds[..] {
                ["ByteLevel"] => return (Decoding::Bytes, false),
                ["Replace", "ByteFallback", "Fuse"] | ["Replace", "ByteFallback", "Fuse", "Strip"] => {
                    let mark = single(&steps[0]["pattern"]["String"]).filter(|_| steps[0]["content"] == " ");
                    let strip = match steps.get(3) {
                        None => Some(0),
                        Some(strip) if strip["content"] == " " && strip["stop"] == 0 => strip["start"].as_u64(),
                        Some(_) => None,
                    };
                    if let (Some(mark), Some(spaces)) = (mark, strip) {
                        return (Decoding::Marked { mark, strip: Strip::Spaces(spaces as usize) }, true);
                    }
                }
                _ => {}
            }
        }
        _ => {}
    }
    (Decoding::Whole, false)
}

/// The byte that a character stands for in a byte-level vocabulary (GPT-2's alphabet: printable Latin-1 characters stand
/// for themselves, all other bytes follow from U+0100 in order).
fn byte_of(c: char) -> Option<u8> {
    match c as u32 {
        code @ (0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff) => Some(code as u8),
        code @ 0x100..=0x120 => Some((code - 0x100) as u8),
        code @ 0x121..=0x142 => Some((code - 0x121 + 0x7f) as u8),
        0x143 => Some(0xad),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::byte_of;

    #[test]
    fn alphabet_covers_each_byte_once() {
        let mut bytes: Vec<u8> = (0..0x200).filter_map(|code| byte_of(char::from_u32(code)?)).collect();
        bytes.sort_unstable();
        assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
        assert_eq!(byte_of('Ġ'), Some(b' '));
        assert_eq!(byte_of('Ċ'), Some(b'\n'));
        assert_eq!(byte_of(' '), None);
    }
}
