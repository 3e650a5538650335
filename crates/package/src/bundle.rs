//! Bundles: a folder that holds a package and what is needed to chat through it.
//!
//! ```text
//! anemone.json             the manifest: roles, context, source, digests
//! model.mlpackage/         or several packages, the parts of one model, in the order that the manifest gives
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
/// The newest version of the manifest that is read here: that of models in parts.
pub const VERSION: u32 = 2;
/// The version of the manifest of a model in one package.
pub const VERSION_OF_ONE: u32 = 1;
/// A model has at most so many parts.
pub const MAX_PARTS: usize = 256;
/// A manifest may be this long, in bytes.
const MAX_MANIFEST: u64 = 1 << 20;
/// A file that the manifest lists may be this long, in bytes.
const MAX_FILE: u64 = 1 << 28;

/// What a bundle holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleManifest {
    /// [`VERSION`] of a model in parts, [`VERSION_OF_ONE`] of others.
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
    /// SHA-256 of the package, as [`Package::digest`](crate::Package::digest) computes it, in hexadecimal digits; of a model
    /// in parts [`digest_of_parts`].
    pub package_sha256: String,
    /// The packages of a model in parts, in the order in which they run. Empty for a model in one package, [`PACKAGE`].
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "some_parts")]
    pub parts: Vec<PartInfo>,
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
    /// States that hold the key-value cache, or inputs if there are `columns`.
    pub cache: Vec<String>,
    /// Outputs of the new columns of the cache, which the host writes; none where the cache is state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
}

/// One package of several that are one model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartInfo {
    /// The name of its folder, beside the manifest.
    pub package: String,
    /// The layers that it computes, from the first up to the one after the last.
    pub layers: [usize; 2],
    /// Its first input: token ids, or what the part before gives.
    pub takes: String,
    /// Its output: what the next part takes, or the logits.
    pub gives: String,
    /// SHA-256 of the package, in hexadecimal digits.
    pub sha256: String,
}

/// The digest of a model whose packages have these digests, in order: that of a single one is its own.
#[must_use]
pub fn digest_of_parts(digests: &[[u8; 32]]) -> [u8; 32] {
    match digests {
        [one] => *one,
        _ => Sha256::digest(digests.concat()).into(),
    }
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
    /// A part of the model is missing.
    #[error(
        "{}: this package is missing: it is part {number} of the {of} that the model is made of; copy the whole folder, or \
         convert the model again",
        path.display()
    )]
    NoPart {
        /// Where it should be.
        path: PathBuf,
        /// Which it is, from 1.
        number: usize,
        /// How many there are.
        of: usize,
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
        let (file, metadata) = match open_regular(&path) {
            Ok(opened) => opened,
            Err(e) if e.kind() == ErrorKind::NotFound => {
                return Err(BundleError::NoManifest { path: folder.to_owned() });
            }
            Err(e) => return Err(io(e)),
        };
        let length = metadata.len();
        if length > MAX_MANIFEST {
            let problem = format!("{length} bytes, more than the {MAX_MANIFEST} that are read");
            return Err(BundleError::Malformed { path, problem });
        }
        let mut text = String::new();
        file.take(MAX_MANIFEST).read_to_string(&mut text).map_err(io)?;
        let malformed = |e: serde_json::Error| BundleError::Malformed {
            path: path.clone(),
            problem: format!("not the JSON that a conversion writes: {e}; convert the model again"),
        };
        // The version first: a later one may have other fields.
        let version: Version = serde_json::from_str(&text).map_err(malformed)?;
        if version.version > VERSION {
            return Err(BundleError::TooNew { path, found: version.version });
        }
        let manifest: Self = serde_json::from_str(&text).map_err(malformed)?;
        match manifest.strange_version().or_else(|| manifest.strange_part()) {
            None => Ok(manifest),
            Some(problem) => Err(BundleError::Malformed { path, problem }),
        }
    }

    /// What is wrong with the version.
    fn strange_version(&self) -> Option<String> {
        let (expected, of) =
            if self.parts.is_empty() { (VERSION_OF_ONE, "in one package") } else { (VERSION, "in parts") };
        (self.version != expected).then(|| {
            format!("`version` is {}; expected {expected}, that of a model {of}; convert the model again", self.version)
        })
    }

    /// What is wrong with the list of parts.
    fn strange_part(&self) -> Option<String> {
        if self.parts.len() > MAX_PARTS {
            return Some(format!("{} parts, more than the {MAX_PARTS} that are taken", self.parts.len()));
        }
        let names: Vec<&str> = self.parts.iter().map(|part| part.package.as_str()).collect();
        let strange = |(i, name): (usize, &&str)| {
            !is_file_name(name) || !name.ends_with(".mlpackage") || names[..i].contains(name)
        };
        let found = names.iter().enumerate().find(|&(i, name)| strange((i, name)));
        if let Some((_, name)) = found {
            return Some(format!("{name:?} in `parts` is no name of a package in the folder, or there twice"));
        }
        let mut reached = 0;
        for part in &self.parts {
            let [first, end] = part.layers;
            if first != reached || end < first {
                return Some(format!(
                    "`layers` of {:?} in `parts` are {first} to {end}; expected to begin at {reached}, where the part before \
                     ends; convert the model again",
                    part.package
                ));
            }
            reached = end;
        }
        None
    }

    /// The packages in the order in which they run: one, or those of the parts.
    ///
    /// # Errors
    /// If a part is missing. A single package that is missing is left to who opens it.
    pub fn packages(&self, folder: &Path) -> Result<Vec<PathBuf>, BundleError> {
        if self.parts.is_empty() {
            return Ok(vec![folder.join(PACKAGE)]);
        }
        let (of, paths) = (self.parts.len(), self.parts.iter().map(|part| folder.join(&part.package)));
        let found = paths.enumerate().map(|(i, path)| match path.is_dir() {
            true => Ok(path),
            false => Err(BundleError::NoPart { path, number: i + 1, of }),
        });
        found.collect()
    }

    /// The text of the manifest file.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain data serialises") + "\n"
    }

    /// Checks the files that the manifest lists, the package excepted.
    ///
    /// # Errors
    /// If one is missing or was changed, or is named by more than a file name: nothing outside of the folder is read. If the
    /// manifest lists none of those that would be used, or not the one that every conversion writes.
    pub fn check_files(&self, folder: &Path) -> Result<(), BundleError> {
        for (name, expected) in &self.files {
            if !is_file_name(name) {
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
        match self.unlisted(folder).into_iter().find(|name| self.files.is_empty() || *name == GENERATION) {
            None => Ok(()),
            Some(name) => Err(BundleError::Malformed {
                path: folder.join(MANIFEST),
                problem: format!(
                    "`files` does not tell of `{name}`, which is in the folder; expected its SHA-256, by which a change would \
                     be seen; convert the model again"
                ),
            }),
        }
    }

    /// Files in the folder that would be used though the manifest does not list them, so that nothing is known of changes:
    /// a tokenizer and a template may be put beside a model that came without.
    #[must_use]
    pub fn unlisted(&self, folder: &Path) -> Vec<&'static str> {
        let read = [GENERATION, TOKENIZER, CHAT_TEMPLATE].into_iter();
        read.filter(|name| !self.files.contains_key(*name) && folder.join(name).exists()).collect()
    }
}

/// Parts, of which there must be some where they are told of.
fn some_parts<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<PartInfo>, D::Error> {
    let parts = Vec::deserialize(deserializer)?;
    if parts.is_empty() {
        return Err(serde::de::Error::custom(format_args!(
            "`parts` is empty; expected the packages of the model in order, or no `parts` for a model in one package, \
             `{PACKAGE}`; convert the model again"
        )));
    }
    Ok(parts)
}

/// Whether it names something in a folder, and nothing outside of it.
#[must_use]
pub fn is_file_name(name: &str) -> bool {
    let parts: Vec<Component<'_>> = Path::new(name).components().collect();
    matches!(parts[..], [Component::Normal(only)] if only == name)
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
            version: VERSION_OF_ONE,
            name: "tiny".into(),
            context: 64,
            weights: "f16".into(),
            functions: BTreeMap::from([("decode".into(), 1)]),
            roles: Roles {
                tokens: "input_ids".into(),
                positions: "cache_position".into(),
                logits: "logits".into(),
                cache: vec!["kv_cache".into()],
                columns: Vec::new(),
            },
            source: SourceInfo { format: "gguf".into(), architecture: "llama".into(), sha256: "00".into() },
            package_sha256: "00".into(),
            parts: Vec::new(),
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
    fn parts_are_packages_in_the_folder_each_once() {
        let dir = tempfile::tempdir().unwrap();
        let part = |name: &str| PartInfo {
            package: name.to_owned(),
            layers: [0, 1],
            takes: "input_ids".into(),
            gives: "logits".into(),
            sha256: "00".into(),
        };
        let mut m = manifest();
        assert!(!m.to_json().contains("parts") && !m.to_json().contains("columns"), "{}", m.to_json());
        for names in [&["../a.mlpackage"][..], &["a.txt"], &["a.mlpackage", "a.mlpackage"], &["b/a.mlpackage"]] {
            m.version = VERSION;
            m.parts = names.iter().map(|name| part(name)).collect();
            std::fs::write(dir.path().join(MANIFEST), m.to_json()).unwrap();
            let error = BundleManifest::read(dir.path()).unwrap_err().to_string();
            assert!(error.contains("in `parts`"), "{error}");
        }
        for layers in [[0, 1], [2, 3], [1, 0], [usize::MAX, 0]] {
            m.parts = vec![part("a.mlpackage"), PartInfo { layers, ..part("b.mlpackage") }];
            std::fs::write(dir.path().join(MANIFEST), m.to_json()).unwrap();
            let error = BundleManifest::read(dir.path()).unwrap_err().to_string();
            assert!(error.contains("`layers` of \"b.mlpackage\"") && error.contains("begin at 1"), "{error}");
        }
        m.parts = vec![part("a.mlpackage"), PartInfo { layers: [1, 1], ..part("b.mlpackage") }];
        std::fs::write(dir.path().join(MANIFEST), m.to_json()).unwrap();
        let read = BundleManifest::read(dir.path()).unwrap();
        assert_eq!(read, m);
        std::fs::create_dir(dir.path().join("a.mlpackage")).unwrap();
        let error = read.packages(dir.path()).unwrap_err().to_string();
        assert!(error.contains("b.mlpackage") && error.contains("part 2 of the 2"), "{error}");
    }

    #[test]
    fn what_would_be_used_unchecked_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let none = BundleManifest { files: BTreeMap::new(), ..manifest() };
        none.check_files(dir.path()).unwrap();
        std::fs::write(dir.path().join("notes.txt"), b"mine").unwrap();
        none.check_files(dir.path()).unwrap();
        for name in [TOKENIZER, CHAT_TEMPLATE, GENERATION] {
            std::fs::write(dir.path().join(name), b"a").unwrap();
            let error = none.check_files(dir.path()).unwrap_err().to_string();
            assert!(
                error.contains(MANIFEST) && error.contains(name) && error.contains("convert the model again"),
                "{error}"
            );
            std::fs::remove_file(dir.path().join(name)).unwrap();
        }
        // Beside a model that came without.
        std::fs::write(dir.path().join("a.txt"), b"a").unwrap();
        std::fs::write(dir.path().join(TOKENIZER), b"a").unwrap();
        manifest().check_files(dir.path()).unwrap();
        assert_eq!(manifest().unlisted(dir.path()), [TOKENIZER]);
        std::fs::write(dir.path().join(GENERATION), b"a").unwrap();
        assert!(manifest().check_files(dir.path()).unwrap_err().to_string().contains(GENERATION));
    }

    #[test]
    fn parts_that_are_told_of_are_there() {
        let dir = tempfile::tempdir().unwrap();
        let empty = manifest().to_json().replacen('{', "{\"parts\": [],", 1);
        std::fs::write(dir.path().join(MANIFEST), empty).unwrap();
        let error = BundleManifest::read(dir.path()).unwrap_err().to_string();
        assert!(error.contains("`parts` is empty; expected") && error.contains(PACKAGE), "{error}");
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
        for version in [0, VERSION] {
            let text = BundleManifest { version, ..manifest() }.to_json();
            std::fs::write(dir.path().join(MANIFEST), text).unwrap();
            let error = BundleManifest::read(dir.path()).unwrap_err().to_string();
            assert!(error.contains(&format!("`version` is {version}; expected 1")), "{error}");
        }
        for text in ["", "{", "[]", "{\"version\": 1}"] {
            std::fs::write(dir.path().join(MANIFEST), text).unwrap();
            assert!(matches!(BundleManifest::read(dir.path()), Err(BundleError::Malformed { .. })), "{text}");
        }
    }
}
