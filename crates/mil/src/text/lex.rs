//! Tokens.

use std::borrow::Cow;

use crate::error::MilError;

/// One token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// `main`, `tensor`, `true`, `inf`.
    Word(&'a str),
    /// `1`, `-0x1.8p-1`, `1.3`, `-inf`.
    Number(&'a str),
    /// A quoted string, its escapes resolved.
    Text(Cow<'a, str>),
    /// One character of punctuation.
    Mark(char),
    /// `->`.
    Arrow,
    /// `...`.
    Ellipsis,
    /// The end of the text.
    End,
}

impl Token<'_> {
    /// The token, for messages.
    pub(super) fn describe(&self) -> String {
        match self {
            Token::Word(w) | Token::Number(w) => format!("`{}`", shorten(w)),
            Token::Text(t) => format!("{:?}", shorten(t)),
            Token::Mark(c) => format!("`{c}`"),
            Token::Arrow => "`->`".to_owned(),
            Token::Ellipsis => "`...`".to_owned(),
            Token::End => "the end of the text".to_owned(),
        }
    }
}

fn shorten(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// The text, token by token.
#[derive(Clone)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The next token and where it begins.
    pub(super) fn next(&mut self) -> Result<(usize, Token<'a>), MilError> {
        self.skip_blanks();
        let start = self.at;
        let rest = &self.text[start..];
        let Some(first) = rest.chars().next() else { return Ok((start, Token::End)) };
        let token = match first {
            'A'..='Z' | 'a'..='z' | '_' => {
                Token::Word(self.take(|c| c.is_ascii_alphanumeric() || c == '_' || c == '@'))
            }
            '"' => Token::Text(self.string()?),
            '-' if rest.starts_with("->") => {
                self.at += 2;
                Token::Arrow
            }
            '.' if rest.starts_with("...") => {
                self.at += 3;
                Token::Ellipsis
            }
            '0'..='9' | '-' | '+' | '.' => Token::Number(self.number()),
            '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>' | ',' | ';' | '=' | '?' => {
                self.at += 1;
                Token::Mark(first)
            }
            other => return Err(error(self.text, start, "MIL text", format!("{other:?}"))),
        };
        Ok((start, token))
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            self.at += rest.len() - rest.trim_start().len();
            let rest = &self.text[self.at..];
            if !rest.starts_with("//") {
                return;
            }
            self.at += rest.find('\n').unwrap_or(rest.len());
        }
    }

    fn take(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let rest = &self.text[self.at..];
        let length = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// Anything that a number may be made of; whether it is one is for whoever knows its type.
    fn number(&mut self) -> &'a str {
        let start = self.at;
        self.at += 1;
        loop {
            self.take(|c| c.is_ascii_alphanumeric() || c == '.');
            let so_far = &self.text[start..self.at];
            let hexadecimal = so_far.trim_start_matches(['-', '+']).starts_with("0x");
            let exponent = so_far.ends_with(if hexadecimal { ['p', 'P'] } else { ['e', 'E'] });
            if !(exponent && self.text[self.at..].starts_with(['+', '-'])) {
                return so_far;
            }
            self.at += 1;
        }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, MilError> {
        let start = self.at;
        self.at += 1;
        let plain = self.take(|c| c != '"' && c != '\\');
        if self.text[self.at..].starts_with('"') {
            self.at += 1;
            return Ok(Cow::Borrowed(plain));
        }
        let mut text = plain.to_owned();
        loop {
            text.push_str(self.take(|c| c != '"' && c != '\\'));
            let mut rest = self.text[self.at..].chars();
            match rest.next() {
                None => return Err(error(self.text, start, "a string that ends with `\"`", "the end of the text")),
                Some('"') => {
                    self.at += 1;
                    return Ok(Cow::Owned(text));
                }
                Some(_) => text.push(self.escape()?),
            }
        }
    }

    /// `\"`, `\\`, `\n`, `\r`, `\t`, `\0`, `\'` or `\u{1f}`.
    fn escape(&mut self) -> Result<char, MilError> {
        let start = self.at;
        self.at += 1;
        let bad = || error(self.text, start, "an escape such as `\\n` or `\\u{1f}`", "another");
        let c = self.text[self.at..].chars().next().ok_or_else(bad)?;
        let simple = match c {
            '"' | '\\' | '\'' => Some(c),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            '0' => Some('\0'),
            _ => None,
        };
        if let Some(simple) = simple {
            self.at += 1;
            return Ok(simple);
        }
        let body = self.text[self.at..].strip_prefix("u{").ok_or_else(bad)?;
        let end = body.find('}').filter(|&end| end <= 6).ok_or_else(bad)?;
        let code = u32::from_str_radix(&body[..end], 16).ok().and_then(char::from_u32).ok_or_else(bad)?;
        self.at += 2 + end + 1;
        Ok(code)
    }
}

/// An error at byte `at` of the text.
pub(super) fn error(text: &str, at: usize, expected: impl Into<String>, found: impl Into<String>) -> MilError {
    let before = &text[..at.min(text.len())];
    let line_start = before.rfind('\n').map_or(0, |i| i + 1);
    MilError::Text {
        line: before.bytes().filter(|&b| b == b'\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        expected: expected.into(),
        found: found.into(),
    }
}
