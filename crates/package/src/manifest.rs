//! `Manifest.json`: which files a package has, and which of them is the model.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::inside;
use crate::limits::MAX_MANIFEST_BYTES;

/// The author that Core ML's own items bear.
pub const AUTHOR: &str = "com.apple.CoreML";

/// A package's manifest. Keys that are not known here are kept and written back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// `1.0.0`.
    #[serde(rename = "fileFormatVersion")]
    pub file_format_version: String,
    /// The items by identifier.
    #[serde(rename = "itemInfoEntries")]
    pub items: BTreeMap<String, Item>,
    /// The identifier of the item that is the model.
    #[serde(rename = "rootModelIdentifier")]
    pub root_model_identifier: String,
    /// Everything else.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// One item: a file or a folder of the package.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// Who it belongs to, such as `com.apple.CoreML`.
    #[serde(default)]
    pub author: String,
    /// What it is.
    #[serde(default)]
    pub description: String,
    /// Its name among its author's items.
    #[serde(default)]
    pub name: String,
    /// Where it is, from the package's folder `Data`.
    pub path: String,
    /// Everything else.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Why bytes are not a usable manifest.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// Larger than what is read.
    #[error("{found} bytes, more than the {MAX_MANIFEST_BYTES} that are read")]
    TooLarge {
        /// Its size in bytes.
        found: u64,
    },
    /// Not JSON of the right form.
    #[error("not a package manifest: {0}; copy or download the package again")]
    Json(#[from] serde_json::Error),
    /// A version that is not read.
    #[error("file format version `{found}`, expected `1.x`; it needs a newer Anemone")]
    Version {
        /// The version that it states.
        found: String,
    },
    /// No model.
    #[error("the root model `{identifier}` is not among its {items} items")]
    NoRoot {
        /// The identifier.
        identifier: String,
        /// How many items there are.
        items: usize,
    },
    /// An item has a path that leaves the package, or none.
    #[error("item `{identifier}` has the path `{found}`, expected a plain path inside the package's folder `Data`")]
    Path {
        /// The identifier.
        identifier: String,
        /// The path.
        found: String,
    },
}

/// Parses and checks a manifest: version, root model, and that every item's path is a plain relative one.
pub fn parse(bytes: &[u8]) -> Result<Manifest, ManifestError> {
    if bytes.len() as u64 > MAX_MANIFEST_BYTES {
        return Err(ManifestError::TooLarge { found: bytes.len() as u64 });
    }
    let manifest: Manifest = serde_json::from_slice(bytes)?;
    if manifest.file_format_version.split('.').next() != Some("1") {
        return Err(ManifestError::Version { found: manifest.file_format_version });
    }
    for (identifier, item) in &manifest.items {
        if inside::relative(&item.path).is_none() {
            return Err(ManifestError::Path { identifier: identifier.clone(), found: item.path.clone() });
        }
    }
    if !manifest.items.contains_key(&manifest.root_model_identifier) {
        return Err(ManifestError::NoRoot { identifier: manifest.root_model_identifier, items: manifest.items.len() });
    }
    Ok(manifest)
}

impl Manifest {
    /// A manifest without items.
    #[must_use]
    pub(crate) fn empty() -> Self {
        Self {
            file_format_version: "1.0.0".into(),
            items: BTreeMap::new(),
            root_model_identifier: String::new(),
            other: Map::new(),
        }
    }

    /// The path of the model from the package's folder; `None` if the manifest was not parsed but built without a model.
    #[must_use]
    pub fn root_model_path(&self) -> Option<PathBuf> {
        let path = inside::relative(&self.items.get(&self.root_model_identifier)?.path)?;
        Some(PathBuf::from("Data").join(path))
    }

    /// As bytes; the same manifest gives the same bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let formatter = serde_json::ser::PrettyFormatter::with_indent(b"    ");
        let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
        self.serialize(&mut serializer).expect("strings and JSON values can be written to memory");
        bytes.push(b'\n');
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_path(path: &str) -> Vec<u8> {
        let path = serde_json::to_string(path).expect("a string");
        format!(
            r#"{{"fileFormatVersion": "1.0.0", "itemInfoEntries": {{"m": {{"path": {path}, "extra": [1]}}}},
                "rootModelIdentifier": "m", "more": {{"a": null}}}}"#
        )
        .into_bytes()
    }

    #[test]
    fn what_is_not_known_is_kept() {
        let manifest = parse(&with_path("a/b")).expect("a manifest");
        assert_eq!(manifest.root_model_path(), Some("Data/a/b".into()));
        assert_eq!(manifest.items["m"].other["extra"], serde_json::json!([1]));
        assert_eq!(manifest.other["more"], serde_json::json!({"a": null}));
        assert_eq!(parse(&manifest.to_bytes()).expect("our own bytes"), manifest);
    }

    #[test]
    fn hostile_manifests_are_refused() {
        for path in ["../../etc/passwd", "/etc/passwd", "a/../../b", "", "C:\\x", "a\\..\\b", "."] {
            assert!(matches!(parse(&with_path(path)), Err(ManifestError::Path { .. })), "{path}");
        }
        let text = String::from_utf8(with_path("a")).expect("text");
        assert!(matches!(parse(text.replace("1.0.0", "2.0").as_bytes()), Err(ManifestError::Version { .. })));
        assert!(matches!(
            parse(text.replace(r#"er": "m""#, r#"er": "n""#).as_bytes()),
            Err(ManifestError::NoRoot { .. })
        ));
        let deep = "[".repeat(1 << 19);
        assert!(matches!(parse(deep.as_bytes()), Err(ManifestError::Json(_))));
        let deep = format!(r#"{{"fileFormatVersion": "1.0.0", "x": {deep}"#);
        assert!(matches!(parse(deep.as_bytes()), Err(ManifestError::Json(_))));
        assert!(matches!(parse(&vec![b' '; (1 << 20) + 1]), Err(ManifestError::TooLarge { .. })));
        for length in 0..text.len() {
            assert!(parse(&text.as_bytes()[..length]).is_err(), "truncated to {length}");
        }
    }
}
