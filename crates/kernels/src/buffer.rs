//! Bytes that start on a cache line.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// An owned run of zeroed bytes whose start is a multiple of 64: what the packed weights want to lie in.
pub struct Buffer {
    bytes: Box<[u8]>,
    start: usize,
    len: usize,
}

/// The alignment that packed weights and every section inside them have.
pub const ALIGN: usize = 64;

impl Buffer {
    /// `len` zero bytes.
    pub fn zeroed(len: usize) -> Self {
        let bytes = vec![0; len + ALIGN].into_boxed_slice();
        let start = bytes.as_ptr().addr().wrapping_neg() % ALIGN;
        Self { bytes, start, len }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len)
    }
}

impl Deref for Buffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}

/// `n` rounded up to a multiple of `to`.
pub(crate) fn round_up(n: usize, to: usize) -> usize {
    n.div_ceil(to) * to
}
