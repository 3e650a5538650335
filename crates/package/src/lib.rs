//! The bytes of a Core ML package: folder, manifest, protobuf, weight blobs.
//!
//! [`Package::open`] reads a package, [`PackageWriter`] writes one, [`rewrite`] one from another; what an operation means is none of this crate's business. Bytes from outside are
//! checked before they are believed, within the bounds that [`limits`] states. The pieces can be had one by one:
//! [`manifest::parse`], [`proto::decode_model`], [`blob::read`].

pub mod blob;
mod error;
mod inside;
pub mod limits;
pub mod manifest;
mod map;
mod package;
pub mod proto;
mod writer;

pub use blob::{Blob, BlobType};
pub use error::PackageError;
pub use map::map_file;
pub use package::Package;
pub use writer::{BlobWriter, PackageWriter, WEIGHT_FILE, rewrite};
