//! Writing packages.

mod carry;
mod identifier;
mod weights;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use prost::Message;

use crate::manifest::{AUTHOR, Item};
use crate::proto::spec::Model;
use crate::proto::{blob_references, check_model};
use crate::{BlobType, Package, PackageError, Staging};
use carry::Carried;
use weights::WeightFile;

pub use carry::rewrite;
pub use weights::BlobWriter;

/// The weight file of a package written here, as its model refers to it.
pub const WEIGHT_FILE: &str = "@model_path/weights/weight.bin";

/// From the package's folder.
const MODEL: &str = "Data/com.apple.CoreML/model.mlmodel";
const WEIGHTS_FOLDER: &str = "Data/com.apple.CoreML/weights";
const WEIGHTS: &str = "Data/com.apple.CoreML/weights/weight.bin";

/// Writes a package: first the blobs, then the model.
///
/// Everything is written to a hidden folder beside the destination, synced, and renamed at the end; a package that is
/// there already is replaced at once where the system can exchange two folders (Linux, macOS), otherwise by two renames.
/// A writer that is dropped before [`finish`](Self::finish) removes its folder; the folder of a process that was killed is
/// removed by the next writer of the same destination. The same blobs and model, in the same order, give the same bytes.
#[derive(Debug)]
pub struct PackageWriter {
    weights: WeightFile,
    carried: Carried,
    staging: Staging,
}

impl PackageWriter {
    /// Begins a package at `dest`, in a folder that exists. `dest` may be a package already, which stays as it is until
    /// [`finish`](Self::finish); anything else there is refused.
    pub fn create(dest: &Path) -> Result<Self, PackageError> {
        let staging = Staging::create(dest, "Manifest.json", in_the_way)?;
        let weights = WeightFile::new(staging.folder().join(WEIGHTS));
        Ok(Self { weights, carried: Carried::default(), staging })
    }

    /// Writes one blob and returns the offset by which the model refers to it (in [`WEIGHT_FILE`]). A blob equal to an
    /// earlier one is not written again.
    ///
    /// `padding_bits` (0 to 7) are the unused bits at the end of `bytes`, for types below a byte.
    pub fn add_blob(&mut self, dtype: BlobType, bytes: &[u8], padding_bits: u64) -> Result<u64, PackageError> {
        self.weights.add(dtype, bytes, padding_bits)
    }

    /// Begins one blob that is written piece by piece, for tensors that are not in memory as a whole.
    pub fn blob_writer(&mut self, dtype: BlobType, padding_bits: u64) -> Result<BlobWriter<'_>, PackageError> {
        self.weights.begin(dtype, padding_bits)
    }

    /// How many bytes of weights are written so far.
    #[must_use]
    pub fn weight_bytes(&self) -> u64 {
        self.weights.end()
    }

    /// Takes over from another package all that a model and its blobs do not say: its other files and items, what its
    /// manifest and the top level of its model hold beyond what is known here. Fails, naming it, if it holds something
    /// that cannot be taken over.
    pub fn carry(&mut self, from: &Package) -> Result<(), PackageError> {
        self.carried = Carried::take(from, self.staging.folder())?;
        Ok(())
    }

    /// Writes the model, which may refer to the added blobs only, and puts the package at its destination.
    ///
    /// The model must be one that [`Package::open`] reads.
    pub fn finish(mut self, model: &Model) -> Result<(), PackageError> {
        self.check_references(model)?;
        let mut bytes = model.encode_to_vec();
        bytes.extend_from_slice(self.carried.top_level());
        let model_path = self.staging.folder().join(MODEL);
        check_model(&bytes).map_err(|source| PackageError::Model { path: self.staging.dest().to_owned(), source })?;
        write_synced(&model_path, &bytes)?;
        let model_identifier = identifier::of("model", &bytes);
        let weights = self.weights.finish()?;

        let mut manifest = self.carried.manifest();
        let known = self.carried.root_item.take();
        let item = core_ml_item(known, "model.mlmodel", "CoreML Model Specification", MODEL);
        manifest.root_model_identifier.clone_from(&model_identifier);
        manifest.items.insert(model_identifier, item);
        if weights.is_some() || self.carried.holds(WEIGHTS_FOLDER) {
            let known = self.carried.weights_item.take();
            let item = core_ml_item(known, "weights", "CoreML Model Weights", WEIGHTS_FOLDER);
            manifest.items.insert(identifier::of("weights", &weights.unwrap_or_default()), item);
        }
        self.staging.commit(&manifest.to_bytes())
    }

    fn check_references(&self, model: &Model) -> Result<(), PackageError> {
        let references = model.program().map(blob_references).unwrap_or_default();
        for reference in references {
            if reference.file_name != WEIGHT_FILE || !self.weights.contains(reference.offset) {
                let (file, offset) = (&reference.file_name, reference.offset);
                return Err(PackageError::Invalid {
                    path: self.staging.dest().to_owned(),
                    reason: format!("the model refers to byte {offset} of {file}, where no blob was added"),
                });
            }
        }
        Ok(())
    }
}

/// A package, whoever made it, may be replaced by one.
fn in_the_way(folder: &Path) -> std::io::Result<Option<String>> {
    Ok((!folder.join("Manifest.json").is_file()).then(|| "a folder without Manifest.json, which is no package".into()))
}

/// An item at `path`, from the package's folder: as it was in the package that is rewritten, or as Core ML's tools make it.
fn core_ml_item(known: Option<Item>, name: &str, description: &str, path: &str) -> Item {
    let path = path.strip_prefix("Data/").expect("items are in Data").to_owned();
    match known {
        Some(item) => Item { path, ..item },
        None => {
            let [author, name, description] = [AUTHOR, name, description].map(String::from);
            Item { author, description, name, path, ..Item::default() }
        }
    }
}

/// Writes a new file, with the folders that it is in, and waits until it is on the disk.
fn write_synced(path: &Path, bytes: &[u8]) -> Result<(), PackageError> {
    let mut file = create_file(path)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(PackageError::io("write", path))
}

fn create_file(path: &Path) -> Result<File, PackageError> {
    let folder = path.parent().map(PathBuf::from).unwrap_or_default();
    std::fs::create_dir_all(&folder).map_err(PackageError::io("create", &folder))?;
    File::options().read(true).write(true).create_new(true).open(path).map_err(PackageError::io("create", path))
}
