//! Bytes that start on a cache line: what packed weights lie in.

mod arena;
#[cfg(all(target_os = "linux", not(miri)))]
mod mapped;
mod pages;

use std::fmt;
use std::ops::{Deref, DerefMut};

pub use arena::{Arena, Key, Saved};
pub use pages::{Number, give_back};

/// An owned run of bytes whose start is a multiple of 64.
pub struct Buffer(Owner);

enum Owner {
    Heap {
        bytes: Box<[u8]>,
        start: usize,
        len: usize,
    },
    /// A part of an [`Arena`], which nobody writes.
    Arena(arena::Part),
}

/// The alignment that packed weights and every section inside them have.
pub const ALIGN: usize = 64;

/// The version of the layouts of packed weights: raised when one of them changes, since packed weights are kept on disk.
pub const PACKING: u32 = 2;

impl Buffer {
    /// `len` zero bytes.
    pub fn zeroed(len: usize) -> Self {
        let bytes = vec![0; len + ALIGN].into_boxed_slice();
        let start = bytes.as_ptr().addr().wrapping_neg() % ALIGN;
        Self(Owner::Heap { bytes, start, len })
    }

    /// `len` bytes that `fill` makes of zeros. Inside [`Arena::scope`] they lie in that arena; `fill` is not called where it
    /// has them already.
    pub fn filled(len: usize, fill: impl FnOnce(&mut [u8])) -> Self {
        arena::place(len, fill).map_or_else(
            |fill| {
                let mut buffer = Self::zeroed(len);
                fill(&mut buffer);
                buffer
            },
            |part| Self(Owner::Arena(part)),
        )
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

impl Deref for Buffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Owner::Heap { bytes, start, len } => &bytes[*start..*start + *len],
            Owner::Arena(part) => part.bytes(),
        }
    }
}

impl DerefMut for Buffer {
    /// What lies in an arena is copied out of it first.
    fn deref_mut(&mut self) -> &mut [u8] {
        if let Owner::Arena(part) = &self.0 {
            let mut copy = Self::zeroed(part.bytes().len());
            copy.copy_from_slice(part.bytes());
            *self = copy;
        }
        match &mut self.0 {
            Owner::Heap { bytes, start, len } => &mut bytes[*start..*start + *len],
            Owner::Arena(_) => unreachable!("it was copied"),
        }
    }
}

/// `n` rounded up to a multiple of `to`.
pub(crate) fn round_up(n: usize, to: usize) -> usize {
    n.div_ceil(to) * to
}
