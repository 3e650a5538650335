//! The one memory map of the project: a file's bytes, shared and never written.

#![allow(unsafe_code, reason = "mapping a file is unsafe by nature; this is the only place that does it")]

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use memmap2::Mmap;

/// Maps the file at `path` into memory, read-only, without copying it. Slices of the result are cheap and keep the map
/// alive. An empty file gives empty bytes.
///
/// The file must not be changed in place or cut short while its bytes are in use; replacing it by rename, or deleting
/// it, is harmless.
///
/// # Errors
/// Those of the operating system; a folder is refused as invalid input.
pub fn map_file(path: &Path) -> io::Result<Bytes> {
    Mapped::open(path).map(|mapped| mapped.bytes)
}

/// A mapped file, with a handle on the map.
#[derive(Debug)]
pub(crate) struct Mapped {
    /// The whole file.
    pub(crate) bytes: Bytes,
    /// What the system said of it when it was opened.
    pub(crate) metadata: Metadata,
    map: Option<Map>,
}

/// The map, shared with the bytes.
#[derive(Debug, Clone)]
struct Map(Arc<Mmap>);

impl AsRef<[u8]> for Map {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Mapped {
    /// As [`map_file`].
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let (file, metadata) = open_regular(path)?;
        if metadata.len() == 0 {
            return Ok(Self { bytes: Bytes::new(), metadata, map: None });
        }
        // SAFETY: the map is private and read-only. Files of packages and checkpoints are replaced by rename, never
        // rewritten in place, while a process has them open; `map_file` documents that contract.
        let map = Map(Arc::new(unsafe { Mmap::map(&file)? }));
        Ok(Self { bytes: Bytes::from_owner(map.clone()), metadata, map: Some(map) })
    }

    /// Gives the pages that were read back to the system. They are read again when they are needed.
    pub(crate) fn release(&self) {
        #[cfg(target_os = "linux")]
        if let Some(Map(map)) = &self.map {
            // SAFETY: the pages of a read-only map of a file come back from the file as they were.
            let _refused = unsafe { map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
        }
        #[cfg(not(target_os = "linux"))]
        let _ = &self.map;
    }
}

/// Opens a regular file, and tells its length and more. Anything else is refused before it is opened: a pipe would block.
pub(crate) fn open_regular(path: &Path) -> io::Result<(File, Metadata)> {
    if !path.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    Ok((file, metadata))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_bytes_and_keeps_them_after_the_file_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, b"some bytes").unwrap();
        let bytes = map_file(&path).unwrap();
        let tail = bytes.slice(5..);
        drop(bytes);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(&tail[..], b"bytes");
    }

    #[test]
    fn released_pages_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let all: Vec<u8> = (0..100_000u32).map(|i| (i % 251) as u8).collect();
        std::fs::write(&path, &all).unwrap();
        let mapped = Mapped::open(&path).unwrap();
        assert_eq!(mapped.bytes[..], all);
        mapped.release();
        assert_eq!(mapped.bytes[..], all);
    }

    #[test]
    fn empty_files_and_folders() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("empty");
        std::fs::write(&path, b"").unwrap();
        assert!(map_file(&path).unwrap().is_empty());
        assert!(map_file(folder.path()).is_err());
    }
}
