//! The bytes of a Core ML package: folder, manifest, protobuf, weight blobs.

mod map;
pub mod proto;

pub use map::map_file;
