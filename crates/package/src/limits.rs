//! Bounds on what is read from outside. Whatever a file claims, reading it stays within these.

/// Largest `Manifest.json` that is read, in bytes.
pub const MAX_MANIFEST_BYTES: u64 = 1 << 20;

/// Largest model file that is read, in bytes. (Weights live in files of their own and are mapped, not read.)
pub const MAX_MODEL_BYTES: u64 = 512 << 20;

/// Most memory, in bytes and generously estimated before anything is allocated, that a decoded model may take.
pub const MAX_DECODED_BYTES: u64 = 1 << 30;

/// Deepest nesting of protobuf messages; the same bound as `prost`'s.
pub const MAX_NESTING: usize = 100;

/// Most unknown fields that are listed by path; further ones are counted.
pub const MAX_LISTED_UNKNOWN: usize = 100;

/// Most files that a package folder may hold beside the model and its weights.
pub const MAX_CARRIED_FILES: usize = 10_000;

/// Deepest nesting of folders in a package.
pub const MAX_FOLDER_DEPTH: usize = 32;

/// Oldest and newest specification version whose ML Programs are read and written.
pub const SPECIFICATION_VERSIONS: std::ops::RangeInclusive<i32> = 6..=10;
