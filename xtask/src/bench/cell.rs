//! What is timed: a prompt of so many tokens, or single tokens, after so many others.

use anyhow::{Result, bail};

/// What one cell times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    /// Tokens of a prompt read at once; none to generate one by one.
    pub(super) prompt: Option<usize>,
    /// Tokens that came before.
    pub(super) depth: usize,
}

/// Tokens that are generated for a sample.
pub(super) const GENERATED: usize = 64;

impl Cell {
    /// Single tokens after `depth`.
    #[must_use]
    pub(super) fn decode(depth: usize) -> Self {
        Self { prompt: None, depth }
    }

    /// A prompt of `n` tokens after `depth`.
    #[must_use]
    pub(super) fn prefill(n: usize, depth: usize) -> Self {
        Self { prompt: Some(n), depth }
    }

    /// `decode`, `decode@2048`, `prefill:128`, `prefill:128@2048`.
    ///
    /// # Errors
    /// If it is none of these.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let (what, depth) = text.split_once('@').map_or((text, Ok(0)), |(what, depth)| (what, depth.parse()));
        let prompt = match what.split_once(':') {
            None if what == "decode" => None,
            Some(("prefill", n)) => Some(n.parse()?),
            _ => bail!("{text:?}: expected decode, decode@N, prefill:N or prefill:N@M"),
        };
        Ok(Self { prompt, depth: depth? })
    }

    /// The positions that it needs.
    #[must_use]
    pub(super) fn end(&self) -> usize {
        self.depth + self.prompt.unwrap_or(GENERATED)
    }
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.prompt {
            None => f.write_str("decode")?,
            Some(n) => write!(f, "prefill:{n}")?,
        }
        if self.depth > 0 { write!(f, "@{}", self.depth) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_read_as_they_are_written() {
        for text in ["decode", "decode@2048", "prefill:128", "prefill:512@2048"] {
            assert_eq!(Cell::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Cell::parse("decode@2048").unwrap().end(), 2112);
        for text in ["", "decode:3", "prefill", "prefill:x", "decode@"] {
            assert!(Cell::parse(text).is_err(), "{text}");
        }
    }
}
