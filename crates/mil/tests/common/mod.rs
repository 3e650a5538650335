//! Where the fixtures are, and which of them are packages.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::path::{Path, PathBuf};

use anemone_mil::{Blobs, DType, Model, decode};
use anemone_package::Package;
use anemone_package::proto::spec;
use bytes::Bytes;
use prost::Message;

/// The folder of fixtures: `ANEMONE_FIXTURES`, or `shared/fixtures` beside the checkout.
pub(crate) fn fixtures() -> PathBuf {
    let dir = match std::env::var_os("ANEMONE_FIXTURES") {
        Some(dir) => PathBuf::from(dir),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures"),
    };
    assert!(dir.is_dir(), "no fixtures at {}: set ANEMONE_FIXTURES", dir.display());
    dir
}

/// Every package among the fixtures, with its name, sorted.
pub(crate) fn packages() -> Vec<(String, PathBuf)> {
    let mut found: Vec<(String, PathBuf)> = std::fs::read_dir(fixtures())
        .expect("the folder of fixtures can be read")
        .map(|entry| entry.expect("an entry of the folder of fixtures").path())
        .filter(|path| path.join("model.mlpackage").is_dir())
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, path.join("model.mlpackage"))
        })
        .collect();
    found.sort();
    assert!(found.len() >= 20, "only {} packages among the fixtures", found.len());
    found
}

/// The model message of a package.
pub(crate) fn message(package: &Path) -> spec::Model {
    let bytes = std::fs::read(package.join("Data/com.apple.CoreML/model.mlmodel")).expect("a model file");
    spec::Model::decode(Bytes::from(bytes)).expect("a model message")
}

/// A weight file read with none of the library's code, so that the two check each other.
pub(crate) struct Weights(pub(crate) Bytes);

impl Weights {
    pub(crate) fn of(package: &Path) -> Self {
        Self(std::fs::read(package.join("Data/com.apple.CoreML/weights/weight.bin")).expect("weights").into())
    }
}

impl Blobs for Weights {
    fn blob(&self, file: &str, offset: u64) -> Result<(DType, Bytes), String> {
        use DType as D;
        if file != "@model_path/weights/weight.bin" {
            return Err(format!("no file `{file}`"));
        }
        let codes = [
            D::F16,
            D::F32,
            D::U8,
            D::I8,
            D::BF16,
            D::I16,
            D::U16,
            D::I4,
            D::U1,
            D::U2,
            D::U4,
            D::U3,
            D::U6,
            D::I32,
            D::U32,
        ];
        let at = usize::try_from(offset).map_err(|e| e.to_string())?;
        let head = self.0.get(at..at + 64).ok_or("no metadata")?;
        let word = |i: usize| u64::from_le_bytes(head[i..i + 8].try_into().expect("8 bytes")) as usize;
        assert_eq!(head[..4], 0xdead_beef_u32.to_le_bytes());
        let data = self.0.get(word(16)..word(16) + word(8)).ok_or("no data")?;
        Ok((codes[head[4] as usize - 1], self.0.slice_ref(data)))
    }
}

/// The decoded model of a package.
pub(crate) fn model(package: &Path) -> Model {
    let opened = Package::open(package).unwrap_or_else(|e| panic!("{e}"));
    decode(&opened).unwrap_or_else(|e| panic!("{}: {e}", package.display()))
}
