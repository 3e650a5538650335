//! Tokenizers: text to token ids and back, from a `tokenizer.json`.
//!
//! The work is done by the `tokenizers` crate, most of it. What is added here: bounds and errors for files from outside, truncation
//! and padding switched off (a prompt is never shortened in silence), encoding of a text that *continues* tokens that are
//! there already, and the bytes of each token, for [`Detokenizer`](crate::Detokenizer).

mod pieces;

use std::path::{Path, PathBuf};

use anemone_convert::ConvertError;
use anemone_convert::tokenizer::Tokenizer as Inner;
use sha2::{Digest, Sha256};
use tokenizers::pre_tokenizers::metaspace::PrependScheme;
use tokenizers::{NormalizerWrapper, PreTokenizerWrapper};

pub(crate) use pieces::{Decoding, Pieces, Strip};

use crate::files::read_text;
use crate::{Error, Result};

/// Longest `tokenizer.json` that is read, in bytes.
pub(crate) const FILE_LIMIT: u64 = 128 << 20;
/// Token ids must be below this, which bounds the tables that are built from them.
const ID_LIMIT: u32 = 1 << 21;
/// Longest text that is encoded in one call, in bytes; less if the tokenizer could make it much longer on the way.
const TEXT_LIMIT: usize = 16 << 20;

/// The usual names of the tokens that end an answer, for models that don't say it themselves.
const USUAL_ENDS: [&str; 10] = [
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<end_of_turn>",
    "<|end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "</s>",
    "<eos>",
    "<｜end▁of▁sentence｜>",
];

/// A tokenizer.
///
/// ```no_run
/// let tokenizer = anemone::Tokenizer::from_file("smollm2/tokenizer.json".as_ref())?;
/// let ids = tokenizer.encode("Hello world", false)?;
/// assert_eq!(tokenizer.decode(&ids)?, "Hello world");
/// # Ok::<(), anemone::Error>(())
/// ```
#[derive(Debug)]
pub struct Tokenizer {
    inner: Inner,
    /// The same without the space that SentencePiece puts before a text, when it does.
    unprefixed: Option<Box<Inner>>,
    pieces: Pieces,
    /// Longest text that is encoded in one call, in bytes.
    longest_text: usize,
    digest: [u8; 32],
    /// Where it was read, if that is known.
    file: Option<PathBuf>,
}

impl Tokenizer {
    /// Reads a `tokenizer.json`.
    ///
    /// # Errors
    /// [`Error::Read`], [`Error::TooLarge`] (over 128 MiB), or [`Error::Tokenizer`] when it is not valid.
    pub fn from_file(path: &Path) -> Result<Self> {
        let read = Self::from_bytes(read_text(path, FILE_LIMIT)?.as_bytes()).map_err(|error| match error {
            Error::Tokenizer { problem } => Error::Tokenizer { problem: format!("{}: {problem}", path.display()) },
            other => other,
        })?;
        Ok(read.at(path))
    }

    /// The same, which was read from this file.
    pub(crate) fn at(mut self, path: &Path) -> Self {
        self.file = path.canonicalize().ok();
        self
    }

    /// The file that it was read from, if it was one.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Reads the contents of a `tokenizer.json`.
    ///
    /// # Errors
    /// As [`Tokenizer::from_file`].
    pub fn from_bytes(json: &[u8]) -> Result<Self> {
        if json.len() as u64 > FILE_LIMIT {
            let found = json.len() as u64;
            return Err(Error::TooLarge { what: "the tokenizer".into(), found, limit: FILE_LIMIT });
        }
        let text = std::str::from_utf8(json).map_err(|e| Error::Tokenizer { problem: e.to_string() })?;
        // The crate below trusts parts of a file and panics on others; neither must pass our border.
        guard(|| {
            let mut inner =
                anemone_convert::tokenizer::load(Path::new("tokenizer.json"), text).map_err(|e| match e {
                    ConvertError::Tokenizer { problem, .. } => Error::Tokenizer { problem },
                    other => Error::Tokenizer { problem: other.to_string() },
                })?;
            inner.with_padding(None);
            inner.with_truncation(None).map_err(problem)?;
            let pieces = Pieces::new(&inner, ID_LIMIT)?;
            let unprefixed = unprefixed(&inner)?.map(Box::new);
            let longest_text = anemone_convert::tokenizer::longest_text(&inner).min(TEXT_LIMIT);
            Ok(Self { inner, unprefixed, pieces, longest_text, digest: Sha256::digest(json).into(), file: None })
        })
    }

    /// The SHA-256 digest of its `tokenizer.json`: tokens mean the same where it is the same.
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// Token ids of a text. Special tokens that are spelled out in it are recognized.
    ///
    /// With `add_special_tokens` the tokenizer adds those that belong around a text (such as a beginning-of-sequence
    /// token); rendered chat templates have theirs already.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for a text over 16 MiB (less for tokenizers that would make much more of it), [`Error::Tokenizer`] when it can't be encoded.
    pub fn encode(&self, text: &str, add_special_tokens: bool) -> Result<Vec<u32>> {
        self.check_length(text)?;
        guard(|| {
            let encoding = self.inner.encode_fast(text, add_special_tokens).map_err(problem)?;
            Ok(encoding.get_ids().to_vec())
        })
    }

    /// Token ids of a text that goes on where other tokens end: nothing is put before it, in particular not the space
    /// that SentencePiece tokenizers put before a text.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn encode_continuing(&self, text: &str) -> Result<Vec<u32>> {
        let Some(unprefixed) = &self.unprefixed else { return self.encode(text, false) };
        self.check_length(text)?;
        guard(|| {
            // Only what comes before the first added token continues; after one, the tokenizer's own rules hold.
            let encoding = self.inner.encode(text, false).map_err(problem)?;
            let added = self.inner.get_added_vocabulary().get_added_tokens_decoder();
            let first = encoding.get_ids().iter().position(|id| added.contains_key(id));
            let (head, tail) = match first {
                Some(index) => (&text[..encoding.get_offsets()[index].0], &encoding.get_ids()[index..]),
                None => (text, &[][..]),
            };
            let head = unprefixed.encode_fast(head, false).map_err(problem)?;
            Ok([head.get_ids(), tail].concat())
        })
    }

    /// The text of token ids, without special tokens. Bytes that are not UTF-8 become U+FFFD.
    ///
    /// # Errors
    /// [`Error::Tokenizer`] when the tokenizer's decoder fails.
    pub fn decode(&self, ids: &[u32]) -> Result<String> {
        guard(|| self.inner.decode(ids, true).map_err(problem))
    }

    /// The token with an id, as the vocabulary spells it.
    pub fn token(&self, id: u32) -> Option<String> {
        self.inner.id_to_token(id)
    }

    /// The id of a token, as the vocabulary spells it.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// Whether an id is a special token: it steers the model and has no text.
    pub fn is_special(&self, id: u32) -> bool {
        self.pieces.is_special(id)
    }

    /// One more than the largest token id. (The model's logits may be wider, padded.)
    pub fn vocabulary(&self) -> usize {
        self.pieces.len()
    }

    /// The special tokens that usually end an answer, as far as this vocabulary has them; for models whose
    /// configuration names none.
    pub fn usual_end_tokens(&self) -> Vec<u32> {
        USUAL_ENDS.iter().filter_map(|token| self.id(token)).filter(|&id| self.is_special(id)).collect()
    }

    pub(crate) fn pieces(&self) -> &Pieces {
        &self.pieces
    }

    fn check_length(&self, text: &str) -> Result<()> {
        if text.len() > self.longest_text {
            let (found, limit) = (text.len() as u64, self.longest_text as u64);
            return Err(Error::TooLarge { what: "the text to encode".into(), found, limit });
        }
        Ok(())
    }
}

fn problem(error: impl std::fmt::Display) -> Error {
    Error::Tokenizer { problem: error.to_string() }
}

fn guard<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    crate::guard::guard(|problem| Error::Tokenizer { problem }, work)
}

/// A copy that puts no space before a text; none if the tokenizer puts none there anyway.
fn unprefixed(inner: &Inner) -> Result<Option<Inner>> {
    let mut changed = false;
    let normalizer = inner.get_normalizer().cloned().and_then(|normalizer| bare_normalizer(normalizer, &mut changed));
    let pre_tokenizer = inner.get_pre_tokenizer().cloned().map(|split| bare_pre_tokenizer(split, &mut changed));
    if !changed {
        return Ok(None);
    }
    let mut bare = inner.clone();
    bare.with_normalizer(normalizer).map_err(problem)?;
    bare.with_pre_tokenizer(pre_tokenizer);
    Ok(Some(bare))
}

fn bare_normalizer(normalizer: NormalizerWrapper, changed: &mut bool) -> Option<NormalizerWrapper> {
    match normalizer {
        NormalizerWrapper::Prepend(_) => {
            *changed = true;
            None
        }
        NormalizerWrapper::Sequence(sequence) => {
            let steps = sequence.as_ref().iter().cloned().filter_map(|step| bare_normalizer(step, changed)).collect();
            Some(NormalizerWrapper::Sequence(tokenizers::normalizers::Sequence::new(steps)))
        }
        other => Some(other),
    }
}

fn bare_pre_tokenizer(split: PreTokenizerWrapper, changed: &mut bool) -> PreTokenizerWrapper {
    match split {
        PreTokenizerWrapper::Metaspace(mut metaspace) if metaspace.prepend_scheme != PrependScheme::Never => {
            *changed = true;
            metaspace.prepend_scheme = PrependScheme::Never;
            PreTokenizerWrapper::Metaspace(metaspace)
        }
        PreTokenizerWrapper::ByteLevel(byte_level) if byte_level.add_prefix_space => {
            *changed = true;
            PreTokenizerWrapper::ByteLevel(byte_level.add_prefix_space(false))
        }
        PreTokenizerWrapper::Sequence(sequence) => {
            let steps = sequence.as_ref().iter().cloned().map(|step| bare_pre_tokenizer(step, changed)).collect();
            PreTokenizerWrapper::Sequence(tokenizers::pre_tokenizers::sequence::Sequence::new(steps))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests;
