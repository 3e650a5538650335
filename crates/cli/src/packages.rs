//! Packages and models as arguments name them.

use std::path::{Path, PathBuf};

use anemone_cli::home::Home;
use anemone_package::bundle::{self, BundleManifest};
use anyhow::{Result, bail};

/// The packages that an argument names, in the order in which they run: one, or those of a model in parts.
pub(crate) fn find_all(argument: &Path) -> Result<Vec<PathBuf>> {
    match BundleManifest::read(argument) {
        Ok(manifest) if !manifest.parts.is_empty() => Ok(manifest.packages(argument)?),
        _ => Ok(vec![find(argument)?]),
    }
}

/// The package that an argument names: a package, a converted folder, or the name of a cached model.
pub(crate) fn find(argument: &Path) -> Result<PathBuf> {
    if let Ok(manifest) = BundleManifest::read(argument)
        && !manifest.parts.is_empty()
    {
        let parts = manifest.parts.iter().map(|part| argument.join(&part.package).display().to_string());
        let parts = parts.collect::<Vec<_>>().join(", ");
        bail!("{}: the model is in parts; name one of its packages: {parts}", argument.display());
    }
    let in_folder = |path: PathBuf| {
        let inside = path.join(bundle::PACKAGE);
        if path.join(bundle::MANIFEST).is_file() || !path.join("Manifest.json").is_file() && inside.is_dir() {
            inside
        } else {
            path
        }
    };
    if argument.exists() {
        return Ok(in_folder(argument.to_owned()));
    }
    let cached = argument.to_str().and_then(|name| Home::locate().ok()?.model(name).ok());
    match cached.filter(|path| path.is_dir()) {
        Some(path) => Ok(in_folder(path)),
        None => bail!(
            "{}: there is no such file or folder, and no cached model of that name (see `anemone models`)",
            argument.display()
        ),
    }
}
