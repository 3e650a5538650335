//! An opened package.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::blob::{self, Blob};
use crate::limits::{MAX_MANIFEST_BYTES, MAX_MODEL_BYTES};
use crate::manifest::{self, Manifest};
use crate::map::{self, Mapped};
use crate::proto::spec::Model;
use crate::proto::{ModelError, UnknownFields, blob_references, decode_model};
use crate::{PackageError, inside};

/// How references to weight files begin: the folder of the model file.
const MODEL_PATH: &str = "@model_path/";

/// A package on disk, or a bare model file: checked, its weights mapped; it never changes.
///
/// Weight files are mapped into memory when a blob of them is first asked for, and stay mapped as long as the package or
/// any [`Blob`] of it lives. Until then nobody may change or truncate them in place; replacing them by renaming is fine.
#[derive(Debug)]
pub struct Package {
    path: PathBuf,
    /// What file references may not leave, as a real path.
    root: PathBuf,
    model_path: PathBuf,
    manifest: Option<Manifest>,
    model: Model,
    unknown: UnknownFields,
    /// The model file, as long as somebody may want its digest.
    model_bytes: Mutex<Option<Bytes>>,
    model_metadata: Metadata,
    weight_files: OnceLock<BTreeSet<String>>,
    maps: Mutex<BTreeMap<String, Mapped>>,
    digest: OnceLock<[u8; 32]>,
}

impl Package {
    /// Opens a `.mlpackage` folder or a bare `.mlmodel` file. The model must be an ML Program of specification version
    /// 6 to 10.
    pub fn open(path: &Path) -> Result<Self, PackageError> {
        Self::open_with(path, Self::with_model)
    }

    /// As [`Package::open`], for those who know already what the model says: it is not read, and [`Package::model`] is empty.
    /// `weight_files` are the names of the weight files that it refers to.
    ///
    /// # Errors
    /// If the files are not there, or it is no package.
    pub fn open_known(path: &Path, weight_files: &BTreeSet<String>) -> Result<Self, PackageError> {
        Self::open_with(path, |path, root, model_path, manifest| {
            let (_, model_metadata) = map::open_regular(&model_path).map_err(PackageError::io("read", &model_path))?;
            Ok(Self {
                path: path.to_owned(),
                root,
                model_path,
                manifest,
                model: Model::default(),
                unknown: UnknownFields::default(),
                model_bytes: Mutex::default(),
                model_metadata,
                weight_files: OnceLock::from(weight_files.clone()),
                maps: Mutex::default(),
                digest: OnceLock::new(),
            })
        })
    }

    fn open_with(
        path: &Path,
        with_model: impl FnOnce(&Path, PathBuf, PathBuf, Option<Manifest>) -> Result<Self, PackageError>,
    ) -> Result<Self, PackageError> {
        if path.metadata().map_err(PackageError::io("open", path))?.is_dir() {
            let root = path.canonicalize().map_err(PackageError::io("open", path))?;
            let manifest = read_manifest(path, &root)?;
            let model_path = root.join(manifest.root_model_path().expect("a parsed manifest has a root model"));
            let model_path = inside::resolve(&model_path, &root, &root.join("Manifest.json")).map(|_| model_path)?;
            with_model(path, root, model_path, Some(manifest))
        } else {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let root = folder.canonicalize().map_err(PackageError::io("open", folder))?;
            let model_path = path.file_name().map_or_else(|| path.to_owned(), |name| root.join(name));
            with_model(path, root, model_path, None).map_err(|error| named_otherwise(path, error))
        }
    }

    fn with_model(
        path: &Path,
        root: PathBuf,
        model_path: PathBuf,
        manifest: Option<Manifest>,
    ) -> Result<Self, PackageError> {
        let (model_bytes, model_metadata) = read_bounded(&model_path, MAX_MODEL_BYTES)?;
        let model_bytes = Bytes::from(model_bytes);
        let decoded =
            decode_model(&model_bytes).map_err(|source| PackageError::Model { path: model_path.clone(), source })?;
        Ok(Self {
            path: path.to_owned(),
            root,
            model_path,
            manifest,
            model: decoded.model,
            unknown: decoded.unknown,
            model_bytes: Mutex::new(Some(model_bytes)),
            model_metadata,
            weight_files: OnceLock::new(),
            maps: Mutex::default(),
            digest: OnceLock::new(),
        })
    }

    /// The path that was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The model file.
    #[must_use]
    pub fn model_path(&self) -> &Path {
        &self.model_path
    }

    /// The manifest; a bare model file has none.
    #[must_use]
    pub fn manifest(&self) -> Option<&Manifest> {
        self.manifest.as_ref()
    }

    /// The model: [`Model::program`] is there.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Frees the memory of the model, which is many times its file, for those who have read it: [`Package::model`] is empty
    /// from here on. Weight files and the digest are as before.
    pub fn drop_model(&mut self) {
        let _named = self.weight_file_names();
        self.model = Model::default();
    }

    /// Frees the bytes of the model file, which [`Package::digest`] else keeps; it reads them again if it is asked.
    pub fn drop_model_bytes(&self) {
        self.model_bytes.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// What the model holds beyond the schema known here.
    #[must_use]
    pub fn unknown_fields(&self) -> &UnknownFields {
        &self.unknown
    }

    /// The blob that `BlobFileValue { file_name, offset }` refers to. Nothing is copied.
    pub fn blob(&self, file_name: &str, offset: u64) -> Result<Blob, PackageError> {
        let file = self.weight_file(file_name)?;
        blob::read(&file, offset).map_err(|source| {
            let path = self.weight_path(file_name).unwrap_or_else(|_| self.model_path.clone());
            PackageError::Blob { path, offset, source }
        })
    }

    /// A whole weight file, mapped. `file_name` is as in the model: `@model_path/weights/weight.bin`.
    pub fn weight_file(&self, file_name: &str) -> Result<Bytes, PackageError> {
        let mut maps = self.maps.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = maps.get(file_name) {
            return Ok(file.bytes.clone());
        }
        let path = self.weight_path(file_name)?;
        let file = Mapped::open(&inside::resolve(&path, &self.root, &self.model_path)?)
            .map_err(PackageError::io("map", &path))?;
        let bytes = file.bytes.clone();
        maps.insert(file_name.to_owned(), file);
        Ok(bytes)
    }

    /// Gives the memory of weight files that were read back to the system, which reads them again when they are needed.
    pub fn release_memory(&self) {
        let maps = self.maps.lock().unwrap_or_else(PoisonError::into_inner);
        maps.values().for_each(Mapped::release);
    }

    /// The names of the weight files that the model refers to.
    #[must_use]
    pub fn weight_file_names(&self) -> BTreeSet<&str> {
        let names = self.weight_files.get_or_init(|| {
            let references = self.model.program().map(blob_references).unwrap_or_default();
            let distinct: BTreeSet<&str> = references.into_iter().map(|blob| blob.file_name.as_str()).collect();
            distinct.into_iter().map(str::to_owned).collect()
        });
        names.iter().map(String::as_str).collect()
    }

    /// The model file and the weight files, each with what the system said of it when it was opened.
    ///
    /// # Errors
    /// If a weight file cannot be opened.
    pub fn files(&self) -> Result<Vec<(PathBuf, Metadata)>, PackageError> {
        let mut all = vec![(self.model_path.clone(), self.model_metadata.clone())];
        for name in self.weight_file_names() {
            self.weight_file(name)?;
            let maps = self.maps.lock().unwrap_or_else(PoisonError::into_inner);
            let metadata = maps.get(name).map(|file| file.metadata.clone());
            all.extend(metadata.map(|metadata| Ok((self.weight_path(name)?, metadata))).transpose()?);
        }
        Ok(all)
    }

    /// Bytes of all weight files together; errors if one cannot be read.
    pub fn weight_bytes(&self) -> Result<u64, PackageError> {
        let sizes = self.weight_file_names().into_iter().map(|name| Ok(self.weight_file(name)?.len() as u64));
        sizes.sum()
    }

    /// Where a weight file is, links not followed.
    pub(crate) fn weight_path(&self, file_name: &str) -> Result<PathBuf, PackageError> {
        let relative = file_name.strip_prefix(MODEL_PATH).and_then(inside::relative);
        let relative = relative.ok_or_else(|| PackageError::Outside {
            path: self.model_path.clone(),
            found: file_name.to_owned(),
            root: self.root.clone(),
            remedy: "weight files are referred to as `@model_path/…`, without `..`",
        })?;
        Ok(self.model_path.parent().unwrap_or(&self.root).join(relative))
    }

    /// The folder that file references may not leave, as a real path.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// A digest of what the package computes with: SHA-256 over the model file and the weight files that it refers to.
    /// The first call reads all of them; errors if a weight file cannot be read.
    pub fn digest(&self) -> Result<[u8; 32], PackageError> {
        if let Some(digest) = self.digest.get() {
            return Ok(*digest);
        }
        let mut hasher = Sha256::new_with_prefix(b"anemone package digest 1\0");
        let mut part = |bytes: &[u8]| {
            hasher.update((bytes.len() as u64).to_le_bytes());
            for piece in bytes.chunks(DIGEST_PIECE) {
                hasher.update(piece);
                // Or all of a large package would be in memory at once.
                self.release_memory();
            }
        };
        let model = self.model_bytes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match model {
            Some(bytes) => part(&bytes),
            None => part(&read_bounded(&self.model_path, MAX_MODEL_BYTES)?.0),
        }
        for name in self.weight_file_names() {
            part(name.as_bytes());
            part(&self.weight_file(name)?);
        }
        Ok(*self.digest.get_or_init(|| hasher.finalize().into()))
    }
}

/// A file that does not even have the name of a model is something else, and not a damaged one.
fn named_otherwise(path: &Path, error: PackageError) -> PackageError {
    let is_named = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("mlmodel"));
    match error {
        PackageError::Model {
            source:
                ModelError::Truncated { .. }
                | ModelError::Malformed { .. }
                | ModelError::Schema(_)
                | ModelError::NoKind { .. },
            ..
        } if !is_named => PackageError::NotAPackage {
            path: path.to_owned(),
            found: "a file that is no Core ML model".into(),
            remedy: "give one of these, or a folder that `anemone convert` made",
        },
        error => error,
    }
}

/// Bytes that a digest has in memory at a time.
const DIGEST_PIECE: usize = 16 << 20;

fn read_manifest(path: &Path, root: &Path) -> Result<Manifest, PackageError> {
    let manifest_path = root.join("Manifest.json");
    if !manifest_path.exists() {
        let (found, remedy) = if root.join("coremldata.bin").exists() {
            ("a compiled model (`.mlmodelc`)", "give the `.mlpackage` that it was compiled from")
        } else {
            ("a folder without `Manifest.json`", "give the folder whose name ends in `.mlpackage`")
        };
        return Err(PackageError::NotAPackage { path: path.to_owned(), found: found.into(), remedy });
    }
    inside::resolve(&manifest_path, root, &manifest_path)?;
    let (bytes, _) = read_bounded(&manifest_path, MAX_MANIFEST_BYTES)?;
    manifest::parse(&bytes).map_err(|source| PackageError::Manifest { path: manifest_path, source })
}

/// Reads a regular file of at most `limit` bytes.
fn read_bounded(path: &Path, limit: u64) -> Result<(Vec<u8>, Metadata), PackageError> {
    let (file, metadata) = map::open_regular(path).map_err(PackageError::io("read", path))?;
    let too_large = |found| PackageError::TooLarge { path: path.to_owned(), found, limit };
    if metadata.len() > limit {
        return Err(too_large(metadata.len()));
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    file.take(limit + 1).read_to_end(&mut bytes).map_err(PackageError::io("read", path))?;
    if bytes.len() as u64 > limit { Err(too_large(bytes.len() as u64)) } else { Ok((bytes, metadata)) }
}
