//! Changes to text: words, numbers, brackets and lines instead of bytes.

use super::Random;

/// Changes one thing.
pub(super) fn change(bytes: &mut Vec<u8>, random: &mut Random) {
    let words = words(bytes);
    if words.is_empty() {
        bytes.extend_from_slice(b"{");
        return;
    }
    let word = random.one_of(&words).clone();
    match random.below(10) {
        0 => drop(bytes.drain(word)),
        1 => {
            let piece = bytes[word.clone()].to_vec();
            bytes.splice(word.start..word.start, piece);
        }
        2 => {
            let other = bytes[random.one_of(&words).clone()].to_vec();
            bytes.splice(word, other);
        }
        3 | 4 => {
            let numbers: Vec<_> = words.iter().filter(|word| bytes[word.start].is_ascii_digit()).collect();
            if !numbers.is_empty() {
                let at = (*random.one_of(&numbers)).clone();
                let number = number(random);
                bytes.splice(at, number.into_bytes());
            }
        }
        5 => {
            // A pair of brackets, or many: nesting.
            let (open, close) =
                *random.one_of(&[("(", ")"), ("[", "]"), ("{", "}"), ("{{", "}}"), ("<", ">"), ("\"", "\"")]);
            let depth = if random.once_in(4) { 1 + random.below(20_000) } else { 1 };
            let close = if random.once_in(2) { close.repeat(depth) } else { String::new() };
            bytes.splice(word.start..word.start, (open.repeat(depth) + &close).into_bytes());
        }
        6 => {
            let keep = random.below(bytes.len());
            bytes.truncate(keep);
        }
        7 => {
            // A whole line, somewhere else.
            let line = line_around(bytes, word.start);
            let piece = bytes[line].to_vec();
            let to = random.one_of(&words).start;
            bytes.splice(to..to, piece);
        }
        8 => {
            let line = line_around(bytes, word.start);
            bytes.drain(line);
        }
        _ => {
            let strange = *random
                .one_of(&["\0", "\u{feff}", "é", "\u{202e}", "\\u0000", "\\ud800", "/*", "-", ".", "'", "%", "null"]);
            bytes.splice(word.start..word.start, strange.bytes());
        }
    }
}

/// Numbers as text, sane and not.
fn number(random: &mut Random) -> String {
    match random.below(6) {
        0 => format!("-{}", random.number()),
        1 => format!("{}.5e{}", random.number(), random.below(400)),
        2 => format!("0x{:x}", random.number()),
        3 => "9".repeat(1 + random.below(400)),
        _ => random.number().to_string(),
    }
}

/// Runs of letters and digits, and single other characters.
fn words(bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
    let mut words = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        at += 1;
        while is_word(bytes[start]) && at < bytes.len() && is_word(bytes[at]) {
            at += 1;
        }
        if !bytes[start].is_ascii_whitespace() {
            words.push(start..at);
        }
    }
    words
}

fn line_around(bytes: &[u8], at: usize) -> std::ops::Range<usize> {
    let start = bytes[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |before| before + 1);
    let end = bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |after| at + after + 1);
    start..end
}
