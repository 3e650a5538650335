//! Keeping file references inside their package.

use std::path::{Component, Path, PathBuf};

use crate::PackageError;

/// Checks that `text` is a plain relative path: no `..`, no root or drive, nothing empty, no backslash, no NUL.
pub(crate) fn relative(text: &str) -> Option<PathBuf> {
    let plain = !text.is_empty()
        && !text.contains(['\\', '\0', ':'])
        && text.split('/').all(|part| !matches!(part, "" | "." | ".."))
        && Path::new(text).components().all(|component| matches!(component, Component::Normal(_)));
    plain.then(|| PathBuf::from(text))
}

/// The real path of `file`, which must exist and, after all symbolic links, lie inside `root` (itself a real path).
///
/// Hugging Face's cache keeps every file of a download in a folder `blobs` and fills its snapshot folders with links to
/// them. A package in such a snapshot may link to the blobs of the same download; to nothing else.
pub(crate) fn resolve(file: &Path, root: &Path, referrer: &Path) -> Result<PathBuf, PackageError> {
    let real = file.canonicalize().map_err(PackageError::io("open", file))?;
    let blobs = download_blobs(root);
    if real.starts_with(root) || blobs.is_some_and(|blobs| real.starts_with(blobs)) {
        return Ok(real);
    }
    Err(PackageError::Outside {
        path: referrer.to_owned(),
        found: real.display().to_string(),
        root: root.to_owned(),
        remedy: "copy the package with its links followed (`cp -RL`)",
    })
}

/// Of a root `…/models--OWNER--NAME/snapshots/REVISION/…`: the folder `…/models--OWNER--NAME/blobs`.
fn download_blobs(root: &Path) -> Option<PathBuf> {
    let snapshots = root.ancestors().find(|folder| folder.file_name().is_some_and(|name| name == "snapshots"))?;
    let download = snapshots.parent()?;
    let name = download.file_name()?.to_str()?;
    name.starts_with("models--").then(|| download.join("blobs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_relative_paths_only() {
        for good in ["weights/weight.bin", "a", "com.apple.CoreML/model.mlmodel", "..a/b..", "…/ü"] {
            assert_eq!(relative(good), Some(PathBuf::from(good)));
        }
        for bad in
            ["", "/", "/a", "a/", "a//b", "..", "a/../b", ".", "./a", "a/.", "C:\\a", "C:a", "a\\b", "a\0b", "\\\\x\\y"]
        {
            assert_eq!(relative(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn blobs_of_a_download() {
        let blobs = |root: &str| download_blobs(Path::new(root));
        assert_eq!(blobs("/c/models--a--b/snapshots/r/m.mlpackage"), Some("/c/models--a--b/blobs".into()));
        assert_eq!(blobs("/c/a/snapshots/r/m.mlpackage"), None);
        assert_eq!(blobs("/c/models--a--b/m.mlpackage"), None);
    }
}
