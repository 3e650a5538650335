//! Protobuf messages of the part of the Core ML schema that ML Programs need.
//!
//! Field numbers and types are facts of Apple's published schema (`mlmodel/format/*.proto` of coremltools); the messages
//! are written by hand. All maps are ordered, so the same model always encodes to the same bytes.
//!
//! [`decode_model`] is the way in for bytes from outside: it knows what the schema here does not cover, and keeps account.

mod decode;
pub mod mil;
mod references;
mod schema;
pub mod spec;
mod unknown;
mod walk;
mod wire;

pub(crate) use decode::check_model;
pub use decode::{DecodedModel, ModelError, decode_model};
pub use references::{blob_references, blob_references_mut};
pub use unknown::UnknownFields;
