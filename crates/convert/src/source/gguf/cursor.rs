//! A position in a GGUF file, from which values are taken with their bounds checked.

use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::error::{ConvertError, Result};

/// Reads forward through `bytes`; an error tells the offset at which it happened.
pub(super) struct Cursor {
    path: PathBuf,
    bytes: Bytes,
    at: usize,
    /// Version 1 has 32-bit lengths, later versions 64-bit ones.
    wide: bool,
}

impl Cursor {
    pub(super) fn new(path: &Path, bytes: Bytes) -> Self {
        Self { path: path.to_owned(), bytes, at: 0, wide: true }
    }

    pub(super) fn set_version(&mut self, version: u32) {
        self.wide = version > 1;
    }

    pub(super) fn wide(&self) -> bool {
        self.wide
    }

    pub(super) fn offset(&self) -> usize {
        self.at
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn error(&self, problem: impl Into<String>) -> ConvertError {
        self.error_at(self.at, problem)
    }

    pub(super) fn error_at(&self, offset: usize, problem: impl Into<String>) -> ConvertError {
        ConvertError::Gguf { path: self.path.clone(), offset: offset as u64, problem: problem.into() }
    }

    /// The next `length` bytes, as a range of the file.
    pub(super) fn take(&mut self, length: u64, what: &str) -> Result<Bytes> {
        let left = self.bytes.len() - self.at;
        match usize::try_from(length) {
            Ok(length) if length <= left => {
                let taken = self.bytes.slice(self.at..self.at + length);
                self.at += length;
                Ok(taken)
            }
            _ => Err(self.error(format!("{what} takes {length} bytes, but {left} are left in the file"))),
        }
    }

    /// Bytes of the file by absolute position, if they are all there.
    pub(super) fn range(&self, start: usize, length: usize) -> Option<Bytes> {
        let end = start.checked_add(length)?;
        (end <= self.bytes.len()).then(|| self.bytes.slice(start..end))
    }

    pub(super) fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        let left = &self.bytes[self.at..];
        match left.first_chunk::<N>() {
            Some(taken) => {
                self.at += N;
                Ok(*taken)
            }
            None => Err(self.error(format!("{what} takes {N} bytes, but {} are left in the file", left.len()))),
        }
    }

    pub(super) fn u32(&mut self, what: &str) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    pub(super) fn u64(&mut self, what: &str) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    /// A count or length, as wide as the version has them.
    pub(super) fn count(&mut self, what: &str) -> Result<u64> {
        if self.wide { self.u64(what) } else { self.u32(what).map(u64::from) }
    }

    /// A length and that many bytes.
    pub(super) fn text(&mut self, what: &str) -> Result<Bytes> {
        let length = self.count(what)?;
        self.take(length, what)
    }

    /// A name: UTF-8, not empty, at most `limit` bytes.
    pub(super) fn name(&mut self, limit: usize, what: &str) -> Result<String> {
        let start = self.at;
        let text = self.text(what)?;
        if text.is_empty() || text.len() > limit {
            return Err(self.error_at(start, format!("{what} of {} bytes; it has 1 to {limit}", text.len())));
        }
        match std::str::from_utf8(&text) {
            Ok(name) => Ok(name.to_owned()),
            Err(e) => Err(self.error_at(start, format!("{what} is not UTF-8: {e}"))),
        }
    }
}
