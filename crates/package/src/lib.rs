//! The bytes of a Core ML package: folder, manifest, protobuf, weight blobs.

pub mod proto;
