//! The names of models that were converted into the cache.

use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use anemone_convert::{DEFAULT_CONTEXT, DEFAULT_PREFILL, Options, Split};
use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

/// The name of the default model converted with these options.
#[must_use]
pub fn of_default(model: &str, options: &Options) -> String {
    format!("{model}{}", suffix(options))
}

/// The name of a checkpoint converted with these options. Another name if the checkpoint changes: it has a digest of the
/// path, and of names, sizes and times of change of the files.
///
/// # Errors
/// If the system tells nothing of the path.
pub fn of_checkpoint(path: &Path, options: &Options) -> Result<String> {
    let place = || format!("cannot look at {}", path.display());
    let real = path.canonicalize().with_context(place)?;
    let mut sha = Sha256::new_with_prefix(concat!("anemone ", env!("CARGO_PKG_VERSION"), "\0"));
    sha.update(real.as_os_str().as_encoded_bytes());
    let mut files = vec![real.clone()];
    if real.is_dir() {
        for entry in fs::read_dir(&real).with_context(place)? {
            files.push(entry.with_context(place)?.path());
        }
        files.sort();
    }
    for file in files.iter().filter(|file| file.is_file()) {
        let metadata = file.metadata().with_context(place)?;
        let changed = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        sha.update(file.as_os_str().as_encoded_bytes());
        sha.update(metadata.len().to_le_bytes());
        sha.update(changed.map_or(0, |time| time.as_nanos()).to_le_bytes());
    }
    let digest: String = sha.finalize().iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let stem = if real.is_dir() { real.file_name() } else { real.file_stem() };
    let stem = plain(&stem.map_or_else(String::new, |stem| stem.to_string_lossy().into_owned()));
    Ok(format!("{stem}{}-{digest}", suffix(options)))
}

/// What is not as usual.
fn suffix(options: &Options) -> String {
    let mut text = String::new();
    if options.weights.name != Options::default().weights.name {
        text += &format!("-{}", options.weights.name);
    }
    if !options.rules.is_empty() {
        let digest = Sha256::digest(options.weights_name());
        text += &digest.iter().take(3).fold("-rules".to_owned(), |text, byte| format!("{text}{byte:02x}"));
    }
    if options.profile != Options::default().profile {
        text += &format!("-{}", options.profile);
    }
    if options.kv != Options::default().kv {
        text += &format!("-{}", options.kv);
    }
    match options.split {
        Split::Auto => {}
        Split::Count(count) => text += &format!("-parts{count}"),
        Split::Bytes(bytes) => text += &format!("-parts-of-{bytes}"),
    }
    if let Some(context) = options.context.filter(|&n| n != DEFAULT_CONTEXT) {
        text += &format!("-context{context}");
    }
    if let Some(prefill) = options.prefill.filter(|&n| n != DEFAULT_PREFILL) {
        text += &format!("-prefill{prefill}");
    }
    text
}

/// A name made of characters that names may have.
fn plain(name: &str) -> String {
    let fits = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    let name: String = name.chars().take(80).map(|c| if fits(c) { c } else { '-' }).collect();
    let name = name.trim_start_matches(['.', '-']);
    if name.is_empty() { "model".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_is_not_as_usual() {
        let usual = Options::default();
        assert_eq!(of_default("Tiny", &usual), "Tiny");
        assert_eq!(of_default("Tiny", &Options { context: Some(DEFAULT_CONTEXT), ..usual.clone() }), "Tiny");
        let int8 = anemone_convert::quantize::find("int8").unwrap();
        let other = Options { context: Some(512), weights: int8, prefill: Some(32), ..usual.clone() };
        assert_eq!(of_default("Tiny", &other), "Tiny-int8-context512-prefill32");
        assert_eq!(
            of_default("Tiny", &Options { profile: anemone_convert::Profile::Ane, ..usual.clone() }),
            "Tiny-ane"
        );
        assert_eq!(of_default("Tiny", &Options { kv: anemone_convert::Kv::Io, ..usual.clone() }), "Tiny-io");
        assert_eq!(of_default("Tiny", &Options { split: Split::Count(3), ..usual.clone() }), "Tiny-parts3");
        let rules = vec![anemone_convert::Rule::parse("mlp.*=int8").unwrap()];
        let ruled = of_default("Tiny", &Options { rules, ..usual });
        assert!(ruled.starts_with("Tiny-rules") && ruled.len() == 16, "{ruled}");
    }

    #[test]
    fn a_changed_checkpoint_has_another_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("A model, so to say.gguf");
        fs::write(&file, "1").unwrap();
        let name = || of_checkpoint(&file, &Options::default()).unwrap();
        let first = name();
        assert!(first.starts_with("A-model--so-to-say-"), "{first}");
        assert_eq!(first, name());
        let whole = || of_checkpoint(folder.path(), &Options::default()).unwrap();
        let whole_first = whole();
        fs::write(&file, "12").unwrap();
        assert_ne!(first, name());
        assert_ne!(whole_first, whole());
        assert!(of_checkpoint(&folder.path().join("none"), &Options::default()).is_err());
        assert_eq!(plain("../.."), "model");
    }
}
