//! Token ids to text while they come.
//!
//! A token need not end where a character ends, the first token's space may have to go, and a stop string may begin in
//! one token and end in another. So text is held back until it is certain; what is given out is never taken back, and all
//! of it together is what [`Tokenizer::decode`] gives for the same tokens.

mod stop;

use crate::tokenizer::{Decoding, Strip};
use crate::{Result, Tokenizer};
use stop::Stops;

/// Turns a stream of tokens into a stream of text.
///
/// With a byte-level vocabulary at most an unfinished character is held back, with SentencePiece's byte tokens their run
/// until it ends (only then is it certain to be valid). Of a stop string never a part is given out.
#[derive(Debug)]
pub struct Detokenizer<'t> {
    tokenizer: &'t Tokenizer,
    stops: Stops,
    decoding: Decoding,
    /// Bytes that are not text yet.
    bytes: Vec<u8>,
    /// Tokens so far; kept only when the tokenizer must decode all of them each time.
    tokens: Vec<u32>,
    /// The last decoded text, with [`Decoding::Whole`].
    whole: String,
    /// Text that may be the beginning of a stop string.
    pending: String,
    /// Text that the last call gave out.
    ready: String,
    /// Length of all text decoded so far.
    decoded: usize,
    /// For each token, where in the text it ends.
    ends: Vec<usize>,
    stopped: Option<usize>,
}

impl<'t> Detokenizer<'t> {
    /// For a new text: SentencePiece's leading space is left out.
    ///
    /// # Errors
    /// [`Error::Setting`](crate::Error::Setting) for an empty stop string.
    pub fn new(tokenizer: &'t Tokenizer, stop: &[String]) -> Result<Self> {
        Ok(Self {
            tokenizer,
            stops: Stops::new(stop)?,
            decoding: tokenizer.pieces().decoding().clone(),
            bytes: Vec::with_capacity(64),
            tokens: Vec::new(),
            whole: String::new(),
            pending: String::with_capacity(256),
            ready: String::with_capacity(256),
            decoded: 0,
            ends: Vec::with_capacity(1024),
            stopped: None,
        })
    }

    /// For a text that goes on where another ends: a leading space is part of it.
    ///
    /// # Errors
    /// As [`Detokenizer::new`].
    pub fn continuing(tokenizer: &'t Tokenizer, stop: &[String]) -> Result<Self> {
        let mut detokenizer = Self::new(tokenizer, stop)?;
        if let Decoding::Marked { strip, .. } = &mut detokenizer.decoding {
            *strip = Strip::Spaces(0);
        }
        Ok(detokenizer)
    }

    /// Takes the next token and gives the text that has become certain. After a stop string nothing more comes.
    ///
    /// # Errors
    /// [`Error::Tokenizer`](crate::Error::Tokenizer) when the tokenizer's own decoder fails.
    pub fn push(&mut self, token: u32) -> Result<&str> {
        self.ready.clear();
        if self.stopped.is_some() {
            return Ok("");
        }
        let before = self.pending.len();
        self.decode(token)?;
        self.decoded += self.pending.len() - before;
        let end = (self.decoded + self.bytes.len()).max(self.whole.len());
        self.ends.push(end.max(self.ends.last().copied().unwrap_or(0)));
        self.release(false);
        Ok(&self.ready)
    }

    /// Ends the stream and gives what was still held back.
    ///
    /// # Errors
    /// As [`Detokenizer::push`].
    pub fn finish(&mut self) -> Result<&str> {
        self.ready.clear();
        if self.stopped.is_some() {
            return Ok("");
        }
        let before = self.pending.len();
        match self.decoding {
            Decoding::Bytes => self.end_utf8(),
            Decoding::Marked { .. } => self.end_byte_run(),
            Decoding::Whole => {
                let text = self.tokenizer.decode(&self.tokens)?;
                self.pending.push_str(text.get(self.decoded..).unwrap_or_default());
            }
        }
        self.decoded += self.pending.len() - before;
        self.release(true);
        Ok(&self.ready)
    }

    /// The stop string that ended the text, if one did.
    pub fn stopped(&self) -> Option<&str> {
        self.stopped.map(|index| self.stops.get(index))
    }

    /// For each token taken, the length in bytes of the text up to its end.
    pub(crate) fn ends(&self) -> &[usize] {
        &self.ends
    }

    fn decode(&mut self, token: u32) -> Result<()> {
        let pieces = self.tokenizer.pieces();
        if !pieces.has_text(token) {
            return Ok(());
        }
        match self.decoding {
            Decoding::Bytes => {
                self.bytes.extend_from_slice(pieces.bytes(token));
                self.take_utf8();
            }
            Decoding::Marked { .. } if pieces.is_byte(token) => self.bytes.extend_from_slice(pieces.bytes(token)),
            Decoding::Marked { mark, .. } => {
                self.end_byte_run();
                let text = std::str::from_utf8(pieces.bytes(token)).expect("the table was made from strings");
                self.push_marked(text, mark);
            }
            Decoding::Whole => {
                self.tokens.push(token);
                let text = self.tokenizer.decode(&self.tokens)?;
                // What the last token didn't change, and no unfinished character, is certain.
                let certain = common_prefix(text.trim_end_matches('\u{fffd}'), &self.whole);
                if certain > self.decoded {
                    self.pending.push_str(&text[self.decoded..certain]);
                }
                self.whole = text;
            }
        }
        Ok(())
    }

    /// Moves whole characters from `bytes` to the text; keeps the beginning of an unfinished one.
    fn take_utf8(&mut self) {
        loop {
            match std::str::from_utf8(&self.bytes) {
                Ok(text) => {
                    self.pending.push_str(text);
                    self.bytes.clear();
                    return;
                }
                Err(error) => {
                    let (valid, rest) = self.bytes.split_at(error.valid_up_to());
                    self.pending.push_str(std::str::from_utf8(valid).expect("valid up to there"));
                    let Some(invalid) = error.error_len() else {
                        let unfinished = rest.len();
                        self.bytes.drain(..self.bytes.len() - unfinished);
                        return;
                    };
                    self.pending.push('\u{fffd}');
                    self.bytes.drain(..error.valid_up_to() + invalid);
                }
            }
        }
    }

    fn end_utf8(&mut self) {
        if !self.bytes.is_empty() {
            self.pending.push('\u{fffd}');
            self.bytes.clear();
        }
    }

    /// A run of byte tokens is text if all of it is; otherwise each byte is replaced.
    fn end_byte_run(&mut self) {
        if self.bytes.is_empty() {
            return;
        }
        let run = std::mem::take(&mut self.bytes);
        match std::str::from_utf8(&run) {
            Ok(text) => self.push_marked(text, ' '),
            Err(_) => run.iter().for_each(|_| self.push_marked("\u{fffd}", ' ')),
        }
        self.bytes = run;
        self.bytes.clear();
    }

    fn push_marked(&mut self, text: &str, mark: char) {
        let Decoding::Marked { strip, .. } = &mut self.decoding else { return };
        for c in text.chars() {
            let space = c == mark || c == ' ';
            match strip {
                Strip::FirstToken if c == mark => continue,
                Strip::Spaces(left) if *left > 0 => {
                    if space {
                        *left -= 1;
                        continue;
                    }
                    *left = 0;
                }
                _ => {}
            }
            self.pending.push(if space { ' ' } else { c });
        }
        if *strip == Strip::FirstToken {
            *strip = Strip::Spaces(0);
        }
    }

    /// Moves from `pending` to `ready` what can't be part of a stop string.
    fn release(&mut self, last: bool) {
        let certain = match self.stops.find(&self.pending) {
            Some((at, which)) => {
                self.stopped = Some(which);
                at
            }
            None if last => self.pending.len(),
            None => self.pending.len() - self.stops.begun(&self.pending),
        };
        self.ready.push_str(&self.pending[..certain]);
        if self.stopped.is_some() {
            self.pending.clear();
        } else {
            self.pending.drain(..certain);
        }
    }
}

/// Length of the longest common prefix in whole characters.
fn common_prefix(a: &str, b: &str) -> usize {
    a.chars().zip(b.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
}

#[cfg(test)]
mod tests;
