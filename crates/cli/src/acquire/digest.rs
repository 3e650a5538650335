//! Digests of files: SHA-256, and git's SHA-1 of a blob, which Hugging Face names small files by.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, Result, bail};
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

use super::Progress;

/// What a file's content must be, by digest. The text is lower-case hexadecimal, as in file names and headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Digest {
    /// SHA-256 of the content.
    Sha256(String),
    /// git's object id: SHA-1 of `blob SIZE\0` and the content.
    GitBlob(String),
}

impl Digest {
    /// A digest from 64 (SHA-256) or 40 (git) hexadecimal digits.
    pub fn parse(hex: &str) -> Result<Digest> {
        let hex = hex.to_ascii_lowercase();
        match hex.len() {
            _ if !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) => bail!("{hex:?} is not a digest"),
            64 => Ok(Digest::Sha256(hex)),
            40 => Ok(Digest::GitBlob(hex)),
            length => bail!("{length} hexadecimal digits are neither a SHA-256 (64) nor a git object id (40)"),
        }
    }

    /// The hexadecimal digits.
    pub fn hex(&self) -> &str {
        match self {
            Digest::Sha256(hex) | Digest::GitBlob(hex) => hex,
        }
    }

    /// Which kind of digest this is.
    pub fn kind(&self) -> &'static str {
        match self {
            Digest::Sha256(_) => "sha256",
            Digest::GitBlob(_) => "git blob sha1",
        }
    }

    /// A running digest of this kind over a file of `size` bytes.
    pub fn hasher(&self, size: u64) -> Hasher {
        match self {
            Digest::Sha256(_) => Hasher::Sha256(Sha256::new()),
            Digest::GitBlob(_) => Hasher::GitBlob(Sha1::new_with_prefix(format!("blob {size}\0"))),
        }
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.kind(), self.hex())
    }
}

/// A digest in the making.
#[derive(Clone)]
pub enum Hasher {
    /// SHA-256.
    Sha256(Sha256),
    /// git's object id.
    GitBlob(Sha1),
}

impl Hasher {
    /// Takes in more of the content.
    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Hasher::Sha256(hasher) => hasher.update(bytes),
            Hasher::GitBlob(hasher) => hasher.update(bytes),
        }
    }

    /// Ends, and holds the result to what was expected.
    pub fn verify(self, expected: &Digest) -> Result<()> {
        let found = match self {
            Hasher::Sha256(hasher) => hex(&hasher.finalize()),
            Hasher::GitBlob(hasher) => hex(&hasher.finalize()),
        };
        if found != expected.hex() {
            bail!("its {} is {found}, not the expected {}", expected.kind(), expected.hex());
        }
        Ok(())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Takes in all that `reader` gives, in pieces, telling `progress`; `read` counts from what is already done.
pub fn feed(hasher: &mut Hasher, mut reader: impl Read, progress: &dyn Progress, mut done: u64) -> Result<u64> {
    let mut buffer = vec![0; 256 * 1024];
    loop {
        if progress.stop() {
            bail!("interrupted");
        }
        match reader.read(&mut buffer) {
            Ok(0) => return Ok(done),
            Ok(count) => {
                hasher.update(&buffer[..count]);
                done += count as u64;
                progress.at(done);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Holds a whole file to its size and digest.
pub fn verify_file(path: &Path, size: u64, expected: &Digest, progress: &dyn Progress) -> Result<()> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let found = file.metadata()?.len();
    if found != size {
        bail!("{} has {found} bytes, not the expected {size}", path.display());
    }
    let mut hasher = expected.hasher(size);
    feed(&mut hasher, file, progress, 0)?;
    hasher.verify(expected).with_context(|| format!("{} is damaged", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_match_known_values() {
        // `printf hello | sha256sum`, `printf hello | git hash-object --stdin`.
        let sha = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
        let git = "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0";
        for text in [sha, git] {
            let digest = Digest::parse(text).unwrap();
            let mut hasher = digest.hasher(5);
            hasher.update(b"hel");
            hasher.update(b"lo");
            hasher.verify(&digest).unwrap();
            let error = digest.hasher(5).verify(&digest).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }

    #[test]
    fn refuses_what_is_no_digest() {
        for text in ["", "abc", &"g".repeat(64), &"0".repeat(63), "../../../../../../../../../../etc/passwd"] {
            assert!(Digest::parse(text).is_err(), "{text:?}");
        }
    }
}
