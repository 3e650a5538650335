//! Reading of GGUF files, versions 1 to 3, over a memory map.
//!
//! The format: <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>. Nothing is copied: text, arrays and tensors
//! are ranges of the map. Every length is checked against what is left of the file before it is used, so the memory that
//! a file can make us allocate is bounded by a small multiple of its number of entries, and those are bounded by
//! [`MAX_ENTRIES`].

mod cursor;
mod metadata;
mod names;
mod split;
mod tensors;
mod value;

use std::path::{Path, PathBuf};

use anemone_package::map_file;
use bytes::Bytes;

use self::cursor::Cursor;
pub use self::metadata::Metadata;
pub(crate) use self::names::to_hugging_face;
pub use self::tensors::{TensorInfo, Tensors};
pub use self::value::{Array, Value, ValueKind};
use crate::error::{ConvertError, Result};

/// The most metadata entries, and the most tensors, that a file may have.
pub const MAX_ENTRIES: u64 = 1 << 16;
/// The most parts that a split model may have.
pub const MAX_PARTS: u64 = 1024;

/// A GGUF file, or the parts of a split one, opened.
#[derive(Debug, Clone)]
pub struct Gguf {
    path: PathBuf,
    parts: Vec<PathBuf>,
    version: u32,
    metadata: Metadata,
    tensors: Tensors,
}

impl Gguf {
    /// Opens the file at `path`. If it is a part of a split model (`NAME-00001-of-00003.gguf`), the other parts are
    /// opened too, from the same folder, and all tensors are seen as one list.
    ///
    /// # Errors
    /// Those of [`Gguf::parse`], of the file system, and parts that are missing or do not belong together.
    pub fn open(path: &Path) -> Result<Self> {
        split::open(path)
    }

    /// Parses the bytes of one file. Errors name `<memory>` as the path.
    ///
    /// # Errors
    /// [`ConvertError::Gguf`] with the offset, when the bytes are not a GGUF file of a known version, are cut short,
    /// exceed a bound, or contradict themselves.
    pub fn parse(bytes: Bytes) -> Result<Self> {
        Self::parse_named(Path::new("<memory>"), bytes)
    }

    fn open_one(path: &Path) -> Result<Self> {
        let bytes = map_file(path).map_err(|e| ConvertError::io(path, "map", e))?;
        Self::parse_named(path, bytes)
    }

    fn parse_named(path: &Path, bytes: Bytes) -> Result<Self> {
        let mut cursor = Cursor::new(path, bytes);
        let version = header(&mut cursor)?;
        cursor.set_version(version);
        let tensor_count = cursor.count("tensor count")?;
        let entry_count = cursor.count("metadata count")?;
        if tensor_count > MAX_ENTRIES || entry_count > MAX_ENTRIES {
            return Err(cursor.error(format!(
                "{tensor_count} tensors and {entry_count} metadata entries; at most {MAX_ENTRIES} of each are read"
            )));
        }
        let metadata = Metadata::read(&mut cursor, path, entry_count)?;
        let tensors = Tensors::read(&mut cursor, tensor_count, metadata.alignment()?)?;
        Ok(Self { path: path.to_owned(), parts: vec![path.to_owned()], version, metadata, tensors })
    }

    /// The path that was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The files that the model consists of, in order.
    pub fn parts(&self) -> &[PathBuf] {
        &self.parts
    }

    /// The version of the format: 1, 2 or 3.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The metadata (of the first part, in a split model).
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The tensors of all parts, under the names that the file gives them.
    pub fn tensors(&self) -> &Tensors {
        &self.tensors
    }
}

/// Checks magic and version; the cursor stands behind them afterwards.
fn header(cursor: &mut Cursor) -> Result<u32> {
    let magic: [u8; 4] = cursor.array("magic")?;
    if &magic != b"GGUF" {
        let what = match &magic {
            b"FUGG" => "a big-endian GGUF file; only little-endian ones are read",
            b"lmgg" | b"fmgg" | b"tjgg" | b"algg" => {
                "a GGML file of before GGUF; convert it with llama.cpp's tools first"
            }
            b"vers" => "a Git LFS pointer and not the file itself; fetch it with `git lfs pull`",
            _ => {
                "not a GGUF file (it does not begin with the letters GGUF); what converts is a GGUF file or a folder in \
                 Hugging Face's form"
            }
        };
        return Err(cursor.error_at(0, what));
    }
    let version: u32 = cursor.u32("version")?;
    match version {
        1..=3 => Ok(version),
        0 => Err(cursor.error_at(4, "version 0; versions 1 to 3 are read")),
        _ if version.swap_bytes() <= 0xffff => {
            let version = version.swap_bytes();
            Err(cursor
                .error_at(4, format!("a big-endian GGUF file (version {version}); only little-endian ones are read")))
        }
        _ => Err(cursor.error_at(4, format!("version {version}; versions 1 to 3 are read"))),
    }
}
