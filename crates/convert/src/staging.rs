//! Where a conversion writes: a folder that appears complete or not at all, and replaces nothing but a converted model.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anemone_package::bundle::{self, BundleManifest};
use anemone_package::{PackageError, Staging};

use crate::error::{ConvertError, Result};

/// Writes a file and waits until it is on the disk.
pub(crate) fn write_synced(path: &Path, bytes: &[u8]) -> Result<()> {
    let write = || -> io::Result<()> {
        let mut file = File::create(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(|e| ConvertError::io(path, "write", e))
}

/// A folder beside `dest` that becomes `dest`, where there is room for `needed` bytes. Folders above it are made.
pub(crate) fn begin(dest: &Path, needed: u64) -> Result<Staging> {
    let parent = dest.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(|e| ConvertError::io(parent, "create", e))?;
    let staging = Staging::create(dest, bundle::MANIFEST, in_the_way).map_err(refused)?;
    let free = fs4::available_space(parent).map_err(|e| ConvertError::io(parent, "ask for the free room of", e))?;
    if free < needed {
        return Err(ConvertError::DiskFull { path: parent.to_owned(), needed, free });
    }
    Ok(staging)
}

/// Whether a conversion to `dest` would be refused because of what is there. Nothing is written.
pub(crate) fn check(dest: &Path) -> Result<()> {
    Staging::check(dest, in_the_way).map_err(refused)
}

/// Completes what `begin` began.
pub(crate) fn commit(staging: Staging, manifest: &BundleManifest) -> Result<()> {
    staging.commit(manifest.to_json().as_bytes()).map_err(refused)
}

fn refused(error: PackageError) -> ConvertError {
    match error {
        PackageError::Occupied { path, found } => ConvertError::Occupied { path, found },
        other => other.into(),
    }
}

/// What each package holds that a conversion writes.
const IN_PACKAGE: [&str; 3] =
    ["Manifest.json", "Data/com.apple.CoreML/model.mlmodel", "Data/com.apple.CoreML/weights/weight.bin"];
/// What it may write. One of these that its manifest does not list was put there by somebody.
const LISTED: [&str; 3] = [bundle::TOKENIZER, bundle::CHAT_TEMPLATE, bundle::GENERATION];
/// What systems put into folders that are looked at.
const NOBODYS: [&str; 3] = [".DS_Store", "Thumbs.db", "desktop.ini"];

/// What in a folder no conversion wrote: it is somebody's, and must not be removed.
fn in_the_way(folder: &Path) -> io::Result<Option<String>> {
    if !folder.join(bundle::MANIFEST).is_file() {
        return Ok(Some(format!("a folder without {}", bundle::MANIFEST)));
    }
    let (listed, mut packages) = BundleManifest::read(folder).map_or_else(
        |_| (Vec::new(), Vec::new()),
        |m| (m.files.into_keys().collect(), m.parts.into_iter().map(|part| part.package).collect()),
    );
    if packages.is_empty() {
        packages.push(bundle::PACKAGE.to_owned());
    }
    let inside = packages.iter().flat_map(|package| IN_PACKAGE.map(|file| Path::new(package).join(file)));
    let mut ours: BTreeSet<PathBuf> = inside.chain([PathBuf::from(bundle::MANIFEST)]).collect();
    ours.extend(LISTED.iter().filter(|name| listed.iter().any(|l| l == *name)).map(PathBuf::from));
    let found = somebodys(folder, Path::new(""), &ours)?;
    Ok(found.map(|path| format!("{:?}, which no conversion wrote", path.to_string_lossy())))
}

/// The first file or folder below `folder` that is not, and does not lead to, one of `ours`.
fn somebodys(folder: &Path, below: &Path, ours: &BTreeSet<PathBuf>) -> io::Result<Option<PathBuf>> {
    let mut entries = fs::read_dir(folder.join(below))?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            // A depth that is ours bounds this.
            if !ours.iter().any(|file| file.starts_with(&path)) {
                return Ok(Some(path));
            }
            if let Some(found) = somebodys(folder, &path, ours)? {
                return Ok(Some(found));
            }
        } else if !ours.contains(&path) && !NOBODYS.iter().any(|name| entry.file_name() == *name) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use anemone_package::bundle::{Roles, SourceInfo};

    use super::*;

    fn manifest() -> BundleManifest {
        BundleManifest {
            version: bundle::VERSION_OF_ONE,
            name: "m".into(),
            context: 8,
            weights: "f16".into(),
            functions: BTreeMap::new(),
            roles: Roles {
                tokens: "i".into(),
                positions: "p".into(),
                logits: "l".into(),
                cache: vec!["c".into()],
                columns: Vec::new(),
            },
            source: SourceInfo { format: "gguf".into(), architecture: "llama".into(), sha256: String::new() },
            package_sha256: String::new(),
            parts: Vec::new(),
            files: BTreeMap::from([(bundle::GENERATION.to_owned(), String::new())]),
        }
    }

    /// A folder as a conversion of a model without a tokenizer leaves it.
    fn converted(dest: &Path) {
        let staging = begin(dest, 0).unwrap();
        for file in IN_PACKAGE {
            let path = staging.folder().join(bundle::PACKAGE).join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            write_synced(&path, b"").unwrap();
        }
        write_synced(&staging.folder().join(bundle::GENERATION), b"").unwrap();
        commit(staging, &manifest()).unwrap();
    }

    #[test]
    fn a_converted_model_is_replaced_but_never_what_somebody_put_beside_or_into_it() {
        let dir = tempfile::tempdir().unwrap();
        let dest = dir.path().join("model");
        converted(&dest);
        converted(&dest);
        fs::write(dest.join("model.mlpackage/.DS_Store"), "").unwrap();
        converted(&dest);
        for theirs in [
            "mine/notes.txt",
            "notes.txt",
            // Where a model without one is said to need it.
            "tokenizer.json",
            "model.mlpackage/notes.txt",
            "model.mlpackage/Data/mine/deep/notes.txt",
            "model.mlpackage/Data/com.apple.CoreML/weights/mine.bin",
        ] {
            let path = dest.join(theirs);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "precious").unwrap();
            let error = begin(&dest, 0).map(drop).unwrap_err().to_string();
            assert!(error.contains("mine") || error.contains(theirs), "{theirs}: {error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
            fs::remove_file(&path).unwrap();
            let _ = fs::remove_dir_all(dest.join("mine"));
            let _ = fs::remove_dir_all(dest.join("model.mlpackage/Data/mine"));
            converted(&dest);
        }
        fs::create_dir(dest.join("empty")).unwrap();
        assert!(matches!(begin(&dest, 0), Err(ConvertError::Occupied { .. })));
    }

    #[test]
    fn what_is_put_there_during_a_conversion_stays_too() {
        let dir = tempfile::tempdir().unwrap();
        let dest = dir.path().join("model");
        converted(&dest);
        let staging = begin(&dest, 0).unwrap();
        fs::write(dest.join("notes.txt"), "precious").unwrap();
        assert!(matches!(commit(staging, &manifest()), Err(ConvertError::Occupied { .. })));
        assert_eq!(fs::read_to_string(dest.join("notes.txt")).unwrap(), "precious");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no staging folder is left");
    }

    #[test]
    fn a_full_disk_is_told_in_sizes_for_people() {
        let dir = tempfile::tempdir().unwrap();
        let error = begin(&dir.path().join("model"), u64::MAX).map(drop).unwrap_err().to_string();
        assert!(error.contains("needs 18446744073.7 GB") && error.contains("B are free"), "{error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "no staging folder is left");
    }
}
