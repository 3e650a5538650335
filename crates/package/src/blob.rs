//! Weight files: "MIL blob" storage, version 2.
//!
//! A file begins with a header of 64 bytes: the number of blobs (`u32`), the version (`u32`, 2), zeros. Each blob begins
//! at a multiple of 64 with 64 bytes of metadata: the sentinel `0xDEADBEEF` (`u32`), the type (`u32`), the size in bytes
//! (`u64`), where the data begins (`u64`, from the start of the file), the unused bits at its end (`u64`), zeros; then
//! come its data. All little-endian. (Facts: `MILBlob/Blob/StorageFormat.hpp` of coremltools.) What is reserved is not
//! read: before iOS 18 it was left undefined.

mod blob_type;

use bytes::Bytes;

pub use blob_type::BlobType;

/// Alignment of everything in a weight file, and the size of its header and of each blob's metadata.
pub const ALIGNMENT: u64 = 64;

pub(crate) const VERSION: u32 = 2;
pub(crate) const SENTINEL: u32 = 0xDEAD_BEEF;

/// One blob: the elements of one tensor, row-major, without its shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// The type of the elements.
    pub dtype: BlobType,
    /// The data, shared with the file. Types below a byte are one stream of bits, lowest bit first.
    pub bytes: Bytes,
    /// How many bits at the end of `bytes` are unused; 0 to 7, and 0 for types of whole bytes.
    pub padding_bits: u64,
}

impl Blob {
    /// The number of elements.
    #[must_use]
    pub fn elements(&self) -> u64 {
        (self.bytes.len() as u64 * 8 - self.padding_bits) / self.dtype.bits()
    }
}

/// Why there is no blob at an offset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BlobError {
    /// The file is too short for its header.
    #[error("the file is {found} bytes, expected at least {ALIGNMENT} for its header; copy or download it again")]
    NoHeader {
        /// Size of the file.
        found: u64,
    },
    /// Another version of the format.
    #[error(
        "weight file of version {found}, expected {VERSION}{}",
        if *.found == 1 { " (version 1 belongs to neural networks, not to ML Programs)" } else { "" }
    )]
    Version {
        /// The version that the file states.
        found: u32,
    },
    /// The offset does not fit.
    #[error("the offset is no multiple of {ALIGNMENT} after the header")]
    Offset,
    /// The metadata are beyond the end.
    #[error("the file ends at byte {size}, before the blob's metadata; copy or download it again")]
    MetadataOutside {
        /// Size of the file.
        size: u64,
    },
    /// No blob begins there.
    #[error("found {found:#010x}, expected the sentinel {SENTINEL:#010x}: no blob begins there")]
    Sentinel {
        /// What is there.
        found: u32,
    },
    /// A type that is not known.
    #[error("element type {found}, expected 1 to 17")]
    Type {
        /// The code.
        found: u32,
    },
    /// The data are misplaced.
    #[error("its data begin at byte {found}, expected a multiple of {ALIGNMENT} after the header")]
    DataOffset {
        /// Where the metadata say that they begin.
        found: u64,
    },
    /// The data are beyond the end.
    #[error("its {length} bytes at byte {start} end beyond the file's {size}; copy or download it again")]
    DataOutside {
        /// Where the data begin.
        start: u64,
        /// How long they are.
        length: u64,
        /// Size of the file.
        size: u64,
    },
    /// Size, padding and type do not agree.
    #[error("{length} bytes less {padding_bits} bits are no whole number of {dtype} elements")]
    Partial {
        /// The type.
        dtype: BlobType,
        /// The size of the data in bytes.
        length: u64,
        /// The unused bits.
        padding_bits: u64,
    },
}

/// Reads the blob whose metadata are at `offset` of `file`, a whole weight file. Nothing is copied.
pub fn read(file: &Bytes, offset: u64) -> Result<Blob, BlobError> {
    let size = file.len() as u64;
    let header = file.get(..ALIGNMENT as usize).ok_or(BlobError::NoHeader { found: size })?;
    let version = u32_at(header, 4);
    if version != VERSION {
        return Err(BlobError::Version { found: version });
    }
    if !offset.is_multiple_of(ALIGNMENT) || offset < ALIGNMENT {
        return Err(BlobError::Offset);
    }
    let metadata = range(offset, ALIGNMENT, size).and_then(|range| file.get(range));
    let metadata = metadata.ok_or(BlobError::MetadataOutside { size })?;
    let sentinel = u32_at(metadata, 0);
    if sentinel != SENTINEL {
        return Err(BlobError::Sentinel { found: sentinel });
    }
    let code = u32_at(metadata, 4);
    let dtype = BlobType::from_code(code).ok_or(BlobError::Type { found: code })?;
    let [length, start, padding] = [8, 16, 24].map(|at| u64_at(metadata, at));
    if !start.is_multiple_of(ALIGNMENT) || start < ALIGNMENT {
        return Err(BlobError::DataOffset { found: start });
    }
    let range = range(start, length, size).ok_or(BlobError::DataOutside { start, length, size })?;
    // For types of whole bytes the field was reserved, so undefined, before iOS 18.
    let padding_bits = if dtype.bits() < 8 { padding } else { 0 };
    if !dtype.divides(length, padding_bits) {
        return Err(BlobError::Partial { dtype, length, padding_bits });
    }
    Ok(Blob { dtype, bytes: file.slice(range), padding_bits })
}

/// The metadata of a blob whose data follow at once.
pub(crate) fn metadata(dtype: BlobType, length: u64, offset: u64, padding_bits: u64) -> [u8; ALIGNMENT as usize] {
    let mut bytes = [0; ALIGNMENT as usize];
    bytes[..4].copy_from_slice(&SENTINEL.to_le_bytes());
    bytes[4..8].copy_from_slice(&dtype.code().to_le_bytes());
    bytes[8..16].copy_from_slice(&length.to_le_bytes());
    bytes[16..24].copy_from_slice(&(offset + ALIGNMENT).to_le_bytes());
    bytes[24..32].copy_from_slice(&padding_bits.to_le_bytes());
    bytes
}

/// The header of a weight file.
pub(crate) fn header(count: u32) -> [u8; ALIGNMENT as usize] {
    let mut bytes = [0; ALIGNMENT as usize];
    bytes[..4].copy_from_slice(&count.to_le_bytes());
    bytes[4..8].copy_from_slice(&VERSION.to_le_bytes());
    bytes
}

fn range(start: u64, length: u64, size: u64) -> Option<std::ops::Range<usize>> {
    let end = start.checked_add(length).filter(|end| *end <= size)?;
    // `size` is the length of a slice, so both fit.
    Some(start as usize..end as usize)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests;
