//! What a path leads to: a converted folder, a folder of ANEMLL, or a package with its tokenizer beside it.

mod anemll;
mod contradictions;
mod yaml;

use std::fs;
use std::path::{Path, PathBuf};

use anemone_mil::model::Model;
use anemone_package::bundle::{self, BundleError, BundleManifest};

use crate::{Error, Result};

/// Where a model is: in one package, or in several that are its parts. Here alone it is decided which a path leads to.
#[derive(Debug)]
pub struct Location {
    /// The packages, in the order in which they run; at least one.
    pub(crate) parts: Vec<PathBuf>,
    /// What a folder of ANEMLL calls its model.
    named: Option<String>,
    /// The manifest of the converted folder that holds the package.
    pub(crate) manifest: Option<BundleManifest>,
    /// Folders that may hold the tokenizer, the likeliest first; at least one.
    pub(crate) folders: Vec<PathBuf>,
}

/// What a location is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum For {
    Running,
    Looking,
}

const CONVERT: &str = "convert it first: `anemone convert SOURCE -o DIR`";
const GIVE: &str = "give a converted folder, a `.mlpackage` or a `.mlmodel`; a checkpoint is converted by `anemone convert SOURCE -o DIR`";

impl Location {
    /// The model that a path leads to: a converted folder, a folder of ANEMLL or its `meta.yaml`, a package, a folder with one.
    /// A package that a converted folder lists leads to the folder's model, all of its parts.
    ///
    /// # Errors
    /// [`Error::Read`] when there is nothing, [`Error::NotAModel`] when it is something else, [`Error::Bundle`] for a
    /// converted folder whose manifest is broken or whose files were changed.
    pub fn find(path: &Path) -> Result<Self> {
        Self::of(path, For::Running)
    }

    /// The packages that a path leads to, for those who look at packages and do not converse with a model: a package is itself,
    /// even if it is a part of a model, and files beside the packages may have been changed.
    ///
    /// # Errors
    /// As [`Location::find`].
    pub fn look(path: &Path) -> Result<Self> {
        Self::of(path, For::Looking)
    }

    /// The packages, in the order in which they run; at least one.
    #[must_use]
    pub fn parts(&self) -> &[PathBuf] {
        &self.parts
    }

    /// What to call a part of several: its package without the ending. None for a model in one package.
    #[must_use]
    pub fn part_name(&self, part: usize) -> Option<String> {
        (self.parts.len() > 1).then(|| stem(&self.parts[part]))
    }

    fn of(path: &Path, purpose: For) -> Result<Self> {
        let metadata = fs::metadata(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        let not_a_model =
            |found, remedy| Err(Error::NotAModel { path: path.to_owned(), found: String::from(found), remedy });
        let ends = |ending| path.extension().is_some_and(|e| e.eq_ignore_ascii_case(ending));
        if !metadata.is_dir() {
            return match () {
                () if ends("mlmodel") => Self::of_package(path, purpose),
                () if path.file_name().is_some_and(|name| name == anemll::META) => {
                    Self::anemll(path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")))
                }
                () if ends("gguf") => not_a_model("a GGUF file", CONVERT),
                () => not_a_model("a file", GIVE),
            };
        }
        if path.join(bundle::MANIFEST).is_file() {
            return Self::bundle(path, purpose);
        }
        if path.join(anemll::META).is_file() {
            return Self::anemll(path);
        }
        // What looks like a package is one; opening it says what is wrong otherwise.
        if path.join("Manifest.json").is_file() || ends("mlpackage") || ends("mlmodelc") {
            return Self::of_package(path, purpose);
        }
        if let Some(package) = only_package(path)? {
            return Self::of_package(&package, purpose);
        }
        if path.join("config.json").is_file() {
            return not_a_model("a Hugging Face folder", CONVERT);
        }
        not_a_model("a folder with no package, or with several", GIVE)
    }

    /// The package, or the first of several.
    pub(crate) fn package(&self) -> &Path {
        &self.parts[0]
    }

    /// The folder of everything but the package.
    pub(crate) fn folder(&self) -> &Path {
        &self.folders[0]
    }

    /// Whether the packages are what the manifest says, if there is one.
    ///
    /// # Errors
    /// [`Error::Bundle`] with what the manifest says and what is there.
    pub(crate) fn agrees_with(&self, models: &[Model], context: usize) -> Result<()> {
        match self.manifest.as_ref().and_then(|manifest| contradictions::contradiction(manifest, models, context)) {
            None => Ok(()),
            Some(problem) => {
                let path = self.folder().join(bundle::MANIFEST);
                Err(Error::bundle(BundleError::Malformed { path, problem }))
            }
        }
    }

    /// What to call the model.
    #[must_use]
    pub fn name(&self) -> String {
        let named = self.manifest.as_ref().map(|manifest| manifest.name.clone()).or_else(|| self.named.clone());
        named.unwrap_or_else(|| stem(self.package()))
    }

    fn bundle(folder: &Path, purpose: For) -> Result<Self> {
        let manifest = BundleManifest::read(folder).map_err(Error::bundle)?;
        if purpose == For::Running {
            manifest.check_files(folder).map_err(Error::bundle)?;
        }
        let parts = manifest.packages(folder).map_err(Error::bundle)?;
        Ok(Self { parts, named: None, manifest: Some(manifest), folders: vec![folder.to_owned()] })
    }

    fn anemll(folder: &Path) -> Result<Self> {
        let anemll::Folder { name, parts } = anemll::read(folder)?;
        Ok(Self { parts, named: name, manifest: None, folders: vec![folder.to_owned()] })
    }

    /// A package; to run it, if it is of a converted folder, the folder.
    fn of_package(path: &Path, purpose: For) -> Result<Self> {
        let beside = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned();
        let listed = || purpose == For::Running && beside.join(bundle::MANIFEST).is_file();
        if let Some(name) = path.file_name().filter(|_| listed()) {
            let lists = |m: BundleManifest| m.parts.iter().any(|part| name == part.package.as_str());
            if name == bundle::PACKAGE || BundleManifest::read(&beside).is_ok_and(lists) {
                return Self::bundle(&beside, purpose);
            }
        }
        Ok(Self { parts: vec![path.to_owned()], named: None, manifest: None, folders: vec![beside, path.to_owned()] })
    }
}

/// The name of a package without its ending.
fn stem(package: &Path) -> String {
    package.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// The package in a folder, if there is exactly one.
fn only_package(folder: &Path) -> Result<Option<PathBuf>> {
    let failed = |source| Error::Read { path: folder.to_owned(), source };
    let mut found = None;
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|e| e == "mlpackage") && found.replace(path).is_some() {
            return Ok(None);
        }
    }
    Ok(found)
}
