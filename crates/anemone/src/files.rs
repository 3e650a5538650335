//! Reading files from outside: regular ones, of bounded length.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::{Error, Result};

/// The text of a file of at most `limit` bytes.
pub(crate) fn read_text(path: &Path, limit: u64) -> Result<String> {
    let failed = |source| Error::Read { path: path.to_owned(), source };
    let too_large = |found| Error::TooLarge { what: path.display().to_string(), found, limit };
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() {
        // A pipe would block.
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")));
    }
    if metadata.len() > limit {
        return Err(too_large(metadata.len()));
    }
    let mut text = String::new();
    File::open(path).and_then(|file| file.take(limit + 1).read_to_string(&mut text)).map_err(failed)?;
    if text.len() as u64 > limit { Err(too_large(text.len() as u64)) } else { Ok(text) }
}
