//! What the layers of a model read on a text, for conversions that make the most of few bits.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anemone_convert::{Calibration, ConvertError, Source};

use crate::error::Error;
use crate::files;
use crate::tokenizer::Tokenizer;
use crate::verify;

/// A text of many kinds, for models whose user gives none.
pub const TEXT: &str = include_str!("calibrate/text.txt");

/// Tokens that are read at most: what they need of memory and time grows with them.
pub const MOST_TOKENS: usize = 2048;

/// More bytes of a text than this are not read: its first tokens alone count.
const MOST_BYTES: u64 = 16 << 20;

/// The text of a file to calibrate with.
///
/// # Errors
/// If it cannot be read, is not a regular file (of which reading might never end), is no UTF-8, or has more than 16 MiB.
pub fn read_text(path: &Path) -> Result<String, Error> {
    files::read_text(path, MOST_BYTES)
}

/// Runs the model on the beginning of `text`, by the plain formulas in single floats. Nothing is left to chance.
/// `read` is told how many layers have read it.
///
/// # Errors
/// If the source has no tokenizer, the text has less than two tokens, a tensor cannot be read, or `stop` says so.
pub fn calibrate(
    source: &Source,
    text: &str,
    stop: &AtomicBool,
    read: impl FnMut(usize),
) -> Result<Calibration, CalibrateError> {
    if !source.has_tokenizer() {
        return Err(CalibrateError::NoTokenizer);
    }
    let tokenizer = Tokenizer::from_bytes(source.tokenizer()?.json.as_bytes())?;
    let mut tokens = tokenizer.encode(text, true)?;
    tokens.truncate(MOST_TOKENS.min(source.config().context_length));
    if tokens.len() < 2 {
        return Err(CalibrateError::Short { tokens: tokens.len() });
    }
    let vocabulary = source.config().vocab_size;
    if let Some(&token) = tokens.iter().find(|&&token| token as usize >= vocabulary) {
        return Err(CalibrateError::Unknown { token, vocabulary });
    }
    Ok(verify::inputs(source, &tokens, stop, read)?)
}

/// Why a model could not be calibrated.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    /// There is nothing to read a text with.
    #[error("the source has no tokenizer to read a text with; put the model's own tokenizer.json beside it")]
    NoTokenizer,
    /// Too short a text.
    #[error(
        "the text for calibration has {tokens} tokens; expected some hundreds of the kind that the model will meet"
    )]
    Short {
        /// What it has.
        tokens: usize,
    },
    /// A token that the model has no row for.
    #[error("the text for calibration has the token {token}, and the model knows {vocabulary} only")]
    Unknown {
        /// The token.
        token: u32,
        /// Tokens that the model knows.
        vocabulary: usize,
    },
    /// The source cannot be read.
    #[error(transparent)]
    Source(#[from] ConvertError),
    /// The tokenizer cannot be used.
    #[error(transparent)]
    Tokenizer(#[from] Error),
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_layer_is_known_and_short_texts_are_refused() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../goldens/tiny/tiny-llama");
        let source = Source::open(source).unwrap();
        let stop = AtomicBool::new(false);
        let mut read = 0;
        let calibration = calibrate(&source, TEXT, &stop, |layers| read = layers).unwrap();
        assert_eq!(read, source.config().layers);
        let head = source.tensor("lm_head.weight").unwrap().name().to_owned();
        for (name, shape) in (source.config().family.tensors)(source.config()) {
            let layer = shape.len() == 2 && (name.starts_with("model.layers.") || name == head);
            assert_eq!(calibration.knows(&name), layer, "{name}");
        }
        assert!(calibrate(&source, "", &stop, |_| {}).unwrap_err().to_string().contains("tokens"));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(calibrate(&source, TEXT, &stop, |_| {}).is_err());
    }
}
