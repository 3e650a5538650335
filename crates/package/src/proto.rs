//! Protobuf messages of the part of the Core ML schema that ML Programs need.
//!
//! Field numbers and types are facts of Apple's published schema (`mlmodel/format/*.proto` of coremltools); the messages
//! are written by hand. All maps are ordered, so the same model always encodes to the same bytes.

pub mod mil;
pub mod spec;
