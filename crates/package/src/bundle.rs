//! Bundles: a folder that holds a package and what is needed to chat through it.
//!
//! ```text
//! anemone.json             the manifest: roles, context, source, digests
//! model.mlpackage/
//! tokenizer.json
//! chat_template.jinja      if the model has one
//! generation_config.json
//! ```

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::map::{map_file, open_regular};

/// The manifest's file name.
pub const MANIFEST: &str = "anemone.json";
/// The package's folder name.
pub const PACKAGE: &str = "model.mlpackage";
/// The tokenizer's file name.
pub const TOKENIZER: &str = "tokenizer.json";
/// The chat template's file name.
pub const CHAT_TEMPLATE: &str = "chat_template.jinja";
/// The file name of the settings for generation.
pub const GENERATION: &str = "generation_config.json";
/// The version of the manifest that this library writes, and the newest that it reads.
pub const VERSION: u32 = 1;
/// A manifest may be this long, in bytes.
const MAX_MANIFEST: u64 = 1 << 20;
/// A file that the manifest lists may be this long, in bytes.
const MAX_FILE: u64 = 1 << 28;

/// What a bundle holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleManifest {
    /// [`VERSION`] of the writer.
    pub version: u32,
    /// The model's name.
    pub name: String,
    /// Positions that the cache has room for.
    pub context: usize,
    /// How weights are stored.
    pub weights: String,
    /// Tokens per call of each function.
    pub functions: BTreeMap<String, usize>,
    /// Which port of the functions is what.
    pub roles: Roles,
    /// Where the model comes from.
    pub source: SourceInfo,
    /// SHA-256 of the package, as [`Package::digest`](crate::Package::digest) computes it, in hexadecimal digits.
    pub package_sha256: String,
    /// SHA-256 of each other file, in hexadecimal digits.
    pub files: BTreeMap<String, String>,
}

/// Which port is what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Roles {
    /// Token ids, input.
    pub tokens: String,
    /// Positions of the tokens, input.
    pub positions: String,
    /// Scores of the next token, output.
    pub logits: String,
    /// States that hold the key-value cache.
    pub cache: Vec<String>,
}

/// Where a model comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceInfo {
    /// `gguf` or `safetensors`.
    pub format: String,
    /// The family of architectures.
    pub architecture: String,
    /// SHA-256 of the files of weights one after the other, in hexadecimal digits.
    pub sha256: String,
}

/// Why a bundle cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The folder has no manifest.
    #[error("{}: there is no {MANIFEST}: this is no converted model; make one with `anemone convert SOURCE -o DIR`", path.display())]
    NoManifest {
        /// The folder.
        path: PathBuf,
    },
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The manifest does not say what it should.
    #[error("{}: {problem}", path.display())]
    Malformed {
        /// The manifest.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The manifest is of a later version.
    #[error("{}: version {found} is newer than {VERSION}, the newest that this program reads; update it", path.display())]
    TooNew {
        /// The manifest.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// A file is not the one that was written.
    #[error("{}: the file was changed: expected SHA-256 {expected}, found {found}; convert the model again", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// The digest in the manifest.
        expected: String,
        /// The digest of what is there.
        found: String,
    },
}

impl BundleManifest {
    /// Reads the manifest of the bundle in `folder`.
    ///
    /// # Errors
    /// If there is none, or it does not say what it should.
    pub fn read(folder: &Path) -> Result<Self, BundleError> {
        let path = folder.join(MANIFEST);
        let io = |source| BundleError::Io { path: path.clone(), source };
        let (file, length) = match open_regular(&path) {
            Ok(opened) => opened,
            Err(e) if e.kind() == ErrorKind::NotFound => {
                return Err(BundleError::NoManifest { path: folder.to_owned() });
            }
            Err(e) => return Err(io(e)),
        };
        if length > MAX_MANIFEST {
            let problem = format!("{length} bytes, more than the {MAX_MANIFEST} that are read");
            return Err(BundleError::Malformed { path, problem });
        }
        let mut text = String::new();
        file.take(MAX_MANIFEST).read_to_string(&mut text).map_err(io)?;
        let malformed = |e: serde_json::Error| BundleError::Malformed { path: path.clone(), problem: e.to_string() };
        // The version first: a later one may have other fields.
        let version: Version = serde_json::from_str(&text).map_err(malformed)?;
        if version.version > VERSION {
            return Err(BundleError::TooNew { path, found: version.version });
        }
        serde_json::from_str(&text).map_err(malformed)
    }

    /// The text of the manifest file.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain data serialises") + "\n"
    }

    /// Checks the files that the manifest lists, the package excepted.
    ///
    /// # Errors
    /// If one is missing or was changed, or is named by more than a file name: nothing outside of the folder is read.
    pub fn check_files(&self, folder: &Path) -> Result<(), BundleError> {
        for (name, expected) in &self.files {
            let parts: Vec<Component<'_>> = Path::new(name).components().collect();
            if !matches!(parts[..], [Component::Normal(only)] if only == name.as_str()) {
                let problem = format!("{name:?} in `files` is no name of a file in the folder");
                return Err(BundleError::Malformed { path: folder.join(MANIFEST), problem });
            }
            let path = folder.join(name);
            let length = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
            if length > MAX_FILE {
                let problem = format!("{length} bytes, more than the {MAX_FILE} that are read");
                return Err(BundleError::Malformed { path, problem });
            }
            let bytes = map_file(&path).map_err(|source| BundleError::Io { path: path.clone(), source })?;
            let found = hex(&Sha256::digest(&bytes));
            if found != *expected {
                return Err(BundleError::Changed { path, expected: expected.clone(), found });
            }
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct Version {
    version: u32,
}

/// Bytes as hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> BundleManifest {
        BundleManifest {
            version: VERSION,
            name: "tiny".into(),
            context: 64,
            weights: "f16".into(),
            functions: BTreeMap::from([("decode".into(), 1)]),
            roles: Roles {
                tokens: "input_ids".into(),
                positions: "cache_position".into(),
                logits: "logits".into(),
                cache: vec!["kv_cache".into()],
            },
            source: SourceInfo { format: "gguf".into(), architecture: "llama".into(), sha256: "00".into() },
            package_sha256: "00".into(),
            files: BTreeMap::from([("a.txt".into(), hex(&Sha256::digest(b"a")))]),
        }
    }

    #[test]
    fn a_manifest_is_read_as_written_and_changed_files_are_named() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(BundleManifest::read(dir.path()), Err(BundleError::NoManifest { .. })));
        std::fs::write(dir.path().join(MANIFEST), manifest().to_json()).unwrap();
        let read = BundleManifest::read(dir.path()).unwrap();
        assert_eq!(read, manifest());
        std::fs::write(dir.path().join("a.txt"), b"a").unwrap();
        read.check_files(dir.path()).unwrap();
        std::fs::write(dir.path().join("a.txt"), b"b").unwrap();
        assert!(read.check_files(dir.path()).unwrap_err().to_string().contains("a.txt"));
    }

    #[test]
    fn files_outside_of_the_folder_are_not_read() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["/dev/zero", "../a.txt", "a/b", "", ".", "a.txt/"] {
            let files = BTreeMap::from([(name.to_owned(), String::new())]);
            let error = BundleManifest { files, ..manifest() }.check_files(dir.path()).unwrap_err();
            assert!(matches!(error, BundleError::Malformed { .. }), "{name}: {error}");
        }
    }

    #[test]
    fn a_file_beyond_the_bound_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(dir.path().join("a.txt")).unwrap();
        file.set_len(1 << 40).unwrap();
        let error = manifest().check_files(dir.path()).unwrap_err().to_string();
        assert!(error.contains("a.txt: 1099511627776 bytes, more than"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join(MANIFEST);
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let error = BundleManifest::read(dir.path()).unwrap_err().to_string();
        assert!(error.contains("not a regular file"), "{error}");
    }

    #[test]
    fn a_later_version_and_a_broken_manifest_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(MANIFEST), r#"{"version": 9, "shape": "other"}"#).unwrap();
        assert!(matches!(BundleManifest::read(dir.path()), Err(BundleError::TooNew { found: 9, .. })));
        for text in ["", "{", "[]", "{\"version\": 1}"] {
            std::fs::write(dir.path().join(MANIFEST), text).unwrap();
            assert!(matches!(BundleManifest::read(dir.path()), Err(BundleError::Malformed { .. })), "{text}");
        }
    }
}
