//! Reading files from outside: regular ones, of bounded length.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::{Error, Result};

/// Opens a regular file to be read.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    if !std::fs::metadata(path)?.is_file() {
        // A pipe would block.
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    File::open(path)
}

/// The text of a file of at most `limit` bytes.
pub(crate) fn read_text(path: &Path, limit: u64) -> Result<String> {
    let failed = |source| Error::Read { path: path.to_owned(), source };
    let too_large = |found| Error::TooLarge { what: path.display().to_string(), found, limit };
    let file = open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    if length > limit {
        return Err(too_large(length));
    }
    let mut text = String::new();
    file.take(limit + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > limit { Err(too_large(text.len() as u64)) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let kind = |path: &Path| open(path).map(drop).unwrap_err().kind();
        assert_eq!(kind(folder.path()), io::ErrorKind::InvalidInput);
        assert_eq!(kind(&folder.path().join("absent")), io::ErrorKind::NotFound);
        #[cfg(unix)]
        {
            let socket = folder.path().join("socket");
            let _bound = std::os::unix::net::UnixListener::bind(&socket).unwrap();
            assert_eq!(kind(&socket), io::ErrorKind::InvalidInput);
        }
        let file = folder.path().join("file");
        std::fs::write(&file, "text").unwrap();
        assert_eq!(read_text(&file, 4).unwrap(), "text");
        assert!(matches!(read_text(&file, 3), Err(Error::TooLarge { found: 4, limit: 3, .. })));
    }
}
