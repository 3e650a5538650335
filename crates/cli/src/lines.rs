//! Lines of standard input, none too long.

use std::io::{BufRead, Read, Result};

/// A line may be this long, in bytes.
pub const MAX_LINE: usize = 4 << 20;

/// One line of input.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// Its text, without the line's end.
    Text(String),
    /// It is no text that can be taken; why.
    Unusable(String),
}

/// Reads the next line; `None` at the end. What is too long is skipped, not kept.
///
/// # Errors
/// Those of the input.
pub fn next(mut input: impl BufRead) -> Result<Option<Line>> {
    let mut bytes = Vec::new();
    let taken = input.by_ref().take(MAX_LINE as u64 + 1).read_until(b'\n', &mut bytes)?;
    if taken == 0 {
        return Ok(None);
    }
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
    } else if bytes.len() > MAX_LINE {
        input.skip_until(b'\n')?;
        return Ok(Some(Line::Unusable(format!("a line is longer than the {MAX_LINE} bytes that are taken"))));
    }
    Ok(Some(match String::from_utf8(bytes) {
        Ok(text) => Line::Text(text),
        Err(error) => Line::Unusable(format!("a line is no UTF-8 text: {}", error.utf8_error())),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut input: &[u8]) -> Vec<Line> {
        std::iter::from_fn(|| next(&mut input).unwrap()).collect()
    }

    #[test]
    fn lines_with_and_without_an_end() {
        let text = |s: &str| Line::Text(s.into());
        assert_eq!(all(b""), []);
        assert_eq!(all(b"a\r\n\nb"), [text("a"), text(""), text("b")]);
    }

    #[test]
    fn what_is_too_long_or_no_text_costs_only_its_line() {
        let mut input = vec![b'x'; MAX_LINE + 9];
        input.extend(b"\n\xff\nb\n");
        let lines = all(&input);
        assert!(matches!(&lines[0], Line::Unusable(why) if why.contains("longer")), "{:?}", lines[0]);
        assert!(matches!(&lines[1], Line::Unusable(why) if why.contains("UTF-8")), "{:?}", lines[1]);
        assert_eq!(lines[2..], [Line::Text("b".into())]);
        let exact = vec![b'x'; MAX_LINE];
        assert!(matches!(&all(&exact)[..], [Line::Text(text)] if text.len() == MAX_LINE));
    }
}
