//! The weight file that is being written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use super::create_file;
use crate::PackageError;
use crate::blob::{self, ALIGNMENT, BlobError, BlobType};

/// What makes two blobs the same: type, padding, content.
type Key = (BlobType, u64, [u8; 32]);

/// The file is made when the first blob comes.
#[derive(Debug)]
pub(super) struct WeightFile {
    path: PathBuf,
    file: Option<BufWriter<File>>,
    /// Where the next blob begins; what is behind it in the file belongs to a blob that was given up.
    end: u64,
    known: BTreeMap<Key, u64>,
    offsets: BTreeSet<u64>,
    content: Sha256,
}

impl WeightFile {
    pub(super) fn new(path: PathBuf) -> Self {
        let (known, offsets) = (BTreeMap::new(), BTreeSet::new());
        Self { path, file: None, end: ALIGNMENT, known, offsets, content: Sha256::new() }
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    pub(super) fn contains(&self, offset: u64) -> bool {
        self.offsets.contains(&offset)
    }

    pub(super) fn add(&mut self, dtype: BlobType, bytes: &[u8], padding_bits: u64) -> Result<u64, PackageError> {
        let key = (dtype, padding_bits, Sha256::digest(bytes).into());
        if let Some(offset) = self.known.get(&key) {
            return Ok(*offset);
        }
        let length = bytes.len() as u64;
        let offset = self.end;
        self.check(dtype, length, padding_bits, offset)?;
        let write = |file: &mut BufWriter<File>| {
            file.seek(SeekFrom::Start(offset))?;
            file.write_all(&blob::metadata(dtype, length, offset, padding_bits))?;
            file.write_all(bytes)?;
            file.write_all(&[0; ALIGNMENT as usize][..padding_after(length)])
        };
        write(self.open()?).map_err(PackageError::io("write", &self.path))?;
        Ok(self.accept(key, length))
    }

    pub(super) fn begin(&mut self, dtype: BlobType, padding_bits: u64) -> Result<BlobWriter<'_>, PackageError> {
        let start = self.end;
        let file = self.open()?;
        // Metadata are written when the length is known.
        file.seek(SeekFrom::Start(start + ALIGNMENT)).map_err(PackageError::io("write", &self.path))?;
        Ok(BlobWriter { weights: self, dtype, padding_bits, length: 0, content: Sha256::new() })
    }

    /// Completes the file. Returns a digest of its content, or `None` if it has no blob and so does not exist.
    pub(super) fn finish(&mut self) -> Result<Option<Vec<u8>>, PackageError> {
        let Some(mut file) = self.file.take() else { return Ok(None) };
        if self.offsets.is_empty() {
            drop(file);
            std::fs::remove_file(&self.path).map_err(PackageError::io("remove", &self.path))?;
            // Other files may be carried in the same folder.
            let _ = self.path.parent().map(std::fs::remove_dir);
            return Ok(None);
        }
        let count = u32::try_from(self.offsets.len());
        let count = count.map_err(|_| self.invalid("more than 2³² blobs".into()))?;
        let end = self.end;
        let mut complete = || {
            file.rewind()?;
            file.write_all(&blob::header(count))?;
            file.flush()?;
            file.get_ref().set_len(end)?;
            file.get_ref().sync_all()
        };
        complete().map_err(PackageError::io("write", &self.path))?;
        Ok(Some(self.content.finalize_reset().to_vec()))
    }

    fn open(&mut self) -> Result<&mut BufWriter<File>, PackageError> {
        if self.file.is_none() {
            self.file = Some(BufWriter::with_capacity(1 << 18, create_file(&self.path)?));
        }
        Ok(self.file.as_mut().expect("it was just opened"))
    }

    fn check(&self, dtype: BlobType, length: u64, padding_bits: u64, offset: u64) -> Result<(), PackageError> {
        if padding_bits != 0 && dtype.bits() >= 8 || !dtype.divides(length, padding_bits) {
            let source = BlobError::Partial { dtype, length, padding_bits };
            return Err(PackageError::Blob { path: self.path.clone(), offset, source });
        }
        Ok(())
    }

    /// Takes the blob that stands at `end`, complete, into the file.
    fn accept(&mut self, key: Key, length: u64) -> u64 {
        let offset = self.end;
        self.end = offset + ALIGNMENT + length + padding_after(length) as u64;
        self.content.update(key.0.code().to_le_bytes());
        self.content.update(key.1.to_le_bytes());
        self.content.update(key.2);
        self.known.insert(key, offset);
        self.offsets.insert(offset);
        offset
    }

    fn invalid(&self, reason: String) -> PackageError {
        PackageError::Invalid { path: self.path.clone(), reason }
    }
}

/// One blob that is written piece by piece, through [`Write`]. Dropped without [`finish`](Self::finish), it leaves
/// nothing.
#[derive(Debug)]
pub struct BlobWriter<'a> {
    weights: &'a mut WeightFile,
    dtype: BlobType,
    padding_bits: u64,
    length: u64,
    content: Sha256,
}

impl BlobWriter<'_> {
    /// Appends bytes; as [`Write::write_all`], with an error that names the file.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), PackageError> {
        self.write_all(bytes).map_err(PackageError::io("write", &self.weights.path))
    }

    /// Completes the blob and returns the offset by which the model refers to it. If it equals an earlier blob, that
    /// one's.
    pub fn finish(self) -> Result<u64, PackageError> {
        let Self { weights, dtype, padding_bits, length, content } = self;
        let key = (dtype, padding_bits, content.finalize().into());
        if let Some(offset) = weights.known.get(&key) {
            return Ok(*offset);
        }
        let offset = weights.end;
        weights.check(dtype, length, padding_bits, offset)?;
        let write = |file: &mut BufWriter<File>| {
            file.write_all(&[0; ALIGNMENT as usize][..padding_after(length)])?;
            file.seek(SeekFrom::Start(offset))?;
            file.write_all(&blob::metadata(dtype, length, offset, padding_bits))
        };
        write(weights.open()?).map_err(PackageError::io("write", &weights.path))?;
        Ok(weights.accept(key, length))
    }
}

impl Write for BlobWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let file = self.weights.file.as_mut().expect("it was opened when the blob began");
        let written = file.write(bytes)?;
        self.content.update(&bytes[..written]);
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.weights.file.as_mut().expect("it was opened when the blob began").flush()
    }
}

fn padding_after(length: u64) -> usize {
    (length.wrapping_neg() % ALIGNMENT) as usize
}
