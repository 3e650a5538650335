//! What a rewritten package takes over from the one that it came from.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::{MODEL, PackageWriter, WEIGHT_FILE, WEIGHTS, WEIGHTS_FOLDER, create_file};
use crate::limits::{MAX_CARRIED_FILES, MAX_FOLDER_DEPTH};
use crate::manifest::{Item, Manifest};
use crate::proto::blob_references_mut;
use crate::proto::spec::Model;
use crate::{Package, PackageError, inside};

/// Writes `model`, which refers to blobs of `from`, as a package of its own at `dest`: with those blobs, and with all
/// else that `from` holds. `dest` may be the path of `from` itself.
pub fn rewrite(from: &Package, dest: &Path, mut model: Model) -> Result<(), PackageError> {
    let mut writer = PackageWriter::create(dest)?;
    writer.carry(from)?;
    let mut moved = BTreeMap::new();
    let program = model.r#type.as_mut().map(|crate::proto::spec::ModelKind::MlProgram(program)| program);
    for reference in program.map(blob_references_mut).unwrap_or_default() {
        let file_name = std::mem::replace(&mut reference.file_name, WEIGHT_FILE.into());
        let old = (file_name, reference.offset);
        reference.offset = match moved.get(&old) {
            Some(offset) => *offset,
            None => {
                let blob = from.blob(&old.0, old.1)?;
                let offset = writer.add_blob(blob.dtype, &blob.bytes, blob.padding_bits)?;
                moved.insert(old, offset);
                offset
            }
        };
    }
    writer.finish(&model)
}

/// What is taken over; nothing, for a new package.
#[derive(Debug, Default)]
pub(super) struct Carried {
    top_level: Vec<u8>,
    manifest: Option<Manifest>,
    /// The model's item as it was.
    pub(super) root_item: Option<Item>,
    /// The item of the folder of weights as it was.
    pub(super) weights_item: Option<Item>,
    /// The files that were copied, from the package's folder.
    files: BTreeSet<PathBuf>,
}

impl Carried {
    /// Copies the other files of `from` into `folder` and notes the rest.
    pub(super) fn take(from: &Package, folder: &Path) -> Result<Self, PackageError> {
        let unknown = from.unknown_fields();
        if unknown.nested_count() > 0 {
            let shown = unknown.nested_paths().iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ");
            return Err(PackageError::CannotCarry {
                path: from.model_path().to_owned(),
                found: format!("{} unknown fields ({shown}, …)", unknown.nested_count()),
                remedy: "a newer Anemone may know them",
            });
        }
        let mut carried = Self { top_level: unknown.top_level().to_vec(), ..Self::default() };
        let Some(mut manifest) = from.manifest().cloned() else { return Ok(carried) };

        let weights = from.weight_file_names().into_iter().map(|name| from.weight_path(name));
        let weights = weights.collect::<Result<BTreeSet<_>, _>>()?;
        let mut copy = Copy { from, to: folder, weights: &weights, files: BTreeSet::new() };
        copy.folder(Path::new(""), 0)?;
        carried.files = copy.files;

        // The items of the model and of its weights are made anew; they keep what else was said of them.
        carried.root_item = manifest.items.remove(&manifest.root_model_identifier);
        manifest.items.retain(|_, item| {
            let path = Path::new("Data").join(&item.path);
            if path == Path::new(WEIGHTS_FOLDER) {
                carried.weights_item = Some(std::mem::take(item));
                return false;
            }
            let held_weights = weights.iter().any(|file| file.starts_with(from.root().join(&path)));
            !held_weights || carried.files.iter().any(|file| file.starts_with(&path))
        });
        carried.manifest = Some(manifest);
        Ok(carried)
    }

    pub(super) fn top_level(&self) -> &[u8] {
        &self.top_level
    }

    pub(super) fn manifest(&mut self) -> Manifest {
        self.manifest.take().unwrap_or_else(Manifest::empty)
    }

    /// Whether a file was copied into this folder, given from the package's.
    pub(super) fn holds(&self, folder: &str) -> bool {
        self.files.iter().any(|file| file.starts_with(folder))
    }
}

struct Copy<'a> {
    from: &'a Package,
    to: &'a Path,
    weights: &'a BTreeSet<PathBuf>,
    files: BTreeSet<PathBuf>,
}

impl Copy<'_> {
    fn folder(&mut self, relative: &Path, depth: usize) -> Result<(), PackageError> {
        let folder = self.from.root().join(relative);
        if depth > MAX_FOLDER_DEPTH {
            return Err(self.cannot(&folder, format!("folders nested more than {MAX_FOLDER_DEPTH} deep")));
        }
        for entry in fs::read_dir(&folder).map_err(PackageError::io("read", &folder))? {
            let entry = entry.map_err(PackageError::io("read", &folder))?;
            let relative = relative.join(entry.file_name());
            let path = entry.path();
            if relative == Path::new("Manifest.json") || path == self.from.model_path() || self.weights.contains(&path)
            {
                continue;
            }
            if entry.file_type().map_err(PackageError::io("read", &path))?.is_dir() {
                self.folder(&relative, depth + 1)?;
            } else {
                self.file(&path, relative)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, relative: PathBuf) -> Result<(), PackageError> {
        if self.files.len() == MAX_CARRIED_FILES {
            return Err(self.cannot(self.from.root(), format!("more than {MAX_CARRIED_FILES} files")));
        }
        if relative == Path::new(MODEL) || relative == Path::new(WEIGHTS) {
            return Err(self.cannot(path, "a file where the model or its weights are to be written".into()));
        }
        let real = inside::resolve(path, self.from.root(), self.from.root())?;
        if !real.is_file() {
            return Err(self.cannot(path, "something that is neither a file nor a folder".into()));
        }
        let mut source = fs::File::open(&real).map_err(PackageError::io("open", &real))?;
        let to = self.to.join(&relative);
        let mut file = create_file(&to)?;
        std::io::copy(&mut source, &mut file).and_then(|_| file.sync_all()).map_err(PackageError::io("write", &to))?;
        self.files.insert(relative);
        Ok(())
    }

    fn cannot(&self, path: &Path, found: String) -> PackageError {
        PackageError::CannotCarry { path: path.to_owned(), found, remedy: "remove it from the package first" }
    }
}
