//! The one memory map of the project: a file's bytes, shared and never written.

#![allow(unsafe_code, reason = "mapping a file is unsafe by nature; this is the only place that does it")]

use std::fs::File;
use std::io;
use std::path::Path;

use bytes::Bytes;

/// Maps the file at `path` into memory, read-only, without copying it. Slices of the result are cheap and keep the map
/// alive. An empty file gives empty bytes.
///
/// The file must not be changed in place or cut short while its bytes are in use; replacing it by rename, or deleting
/// it, is harmless.
///
/// # Errors
/// Those of the operating system; a folder is refused as invalid input.
pub fn map_file(path: &Path) -> io::Result<Bytes> {
    let (file, length) = open_regular(path)?;
    if length == 0 {
        return Ok(Bytes::new());
    }
    // SAFETY: the map is private and read-only. Files of packages and checkpoints are replaced by rename, never
    // rewritten in place, while a process has them open; `map_file` documents that contract.
    let map = unsafe { memmap2::Mmap::map(&file)? };
    Ok(Bytes::from_owner(map))
}

/// Opens a regular file and tells its length. Anything else is refused before it is opened: a pipe would block.
pub(crate) fn open_regular(path: &Path) -> io::Result<(File, u64)> {
    if !path.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    Ok((file, length))
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
    fn empty_files_and_folders() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("empty");
        std::fs::write(&path, b"").unwrap();
        assert!(map_file(&path).unwrap().is_empty());
        assert!(map_file(folder.path()).is_err());
    }
}
