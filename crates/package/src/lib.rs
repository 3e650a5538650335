//! The bytes of a Core ML package: folder, manifest, protobuf, weight blobs.
//!
//! [`Package::open`] reads a package, [`PackageWriter`] writes one, [`rewrite`] one from another; what an operation means is none of this crate's business. Bytes from outside are
//! checked before they are believed, within the bounds that [`limits`] states. The pieces can be had one by one:
//! [`manifest::parse`], [`proto::decode_model`], [`blob::read`].
//!
//! ```
//! use anemone_package::proto::mil::Program;
//! use anemone_package::proto::spec::{Model, ModelKind};
//! use anemone_package::{BlobType, Package, PackageWriter, WEIGHT_FILE};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("example.mlpackage");
//! let mut writer = PackageWriter::create(&path)?;
//! let offset = writer.add_blob(BlobType::UInt4, &[0x21, 0x43, 0x05], 4)?;
//! let program = ModelKind::MlProgram(Program { version: 1, ..Program::default() });
//! writer.finish(&Model { specification_version: 9, r#type: Some(program), ..Model::default() })?;
//!
//! let package = Package::open(&path)?;
//! let blob = package.blob(WEIGHT_FILE, offset)?;
//! assert_eq!((blob.dtype, blob.elements()), (BlobType::UInt4, 5));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod blob;
pub mod bundle;
mod error;
mod inside;
pub mod limits;
pub mod manifest;
mod map;
mod package;
pub mod proto;
mod staging;
mod writer;

pub use blob::{Blob, BlobType};
pub use error::PackageError;
pub use map::map_file;
pub use package::Package;
pub use staging::{InTheWay, Staging};
pub use writer::{BlobWriter, PackageWriter, WEIGHT_FILE, rewrite};
