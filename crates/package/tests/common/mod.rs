//! Where the fixtures are, and which of them are packages.

use std::path::PathBuf;

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

/// The model file of a package that coremltools wrote.
#[allow(dead_code, reason = "not every test reads models by itself")]
pub(crate) fn model_bytes(package: &std::path::Path) -> Vec<u8> {
    std::fs::read(package.join("Data/com.apple.CoreML/model.mlmodel")).expect("a model file")
}
