//! What a model holds beyond the schema here.

use crate::limits::MAX_LISTED_UNKNOWN;

/// The fields of a model that the messages here do not have, so that decoding drops them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnknownFields {
    listed: Vec<String>,
    count: u64,
    nested: u64,
    top_level: Vec<u8>,
}

impl UnknownFields {
    /// Whether there are none: decoding loses nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many of them are below the top level; these cannot be written back.
    #[must_use]
    pub fn nested_count(&self) -> u64 {
        self.nested
    }

    /// Their paths, such as `Model.description.input[2].type #9`: at most
    /// [`MAX_LISTED_UNKNOWN`], nested ones only.
    #[must_use]
    pub fn nested_paths(&self) -> &[String] {
        &self.listed
    }

    /// Those of the top level as they stood in the file, to be written behind a rewritten model.
    #[must_use]
    pub fn top_level(&self) -> &[u8] {
        &self.top_level
    }

    pub(super) fn add_top_level(&mut self, raw: &[u8]) {
        self.count += 1;
        self.top_level.extend_from_slice(raw);
    }

    pub(super) fn add_nested(&mut self, path: impl FnOnce() -> String) {
        self.count += 1;
        self.nested += 1;
        if self.listed.len() < MAX_LISTED_UNKNOWN {
            self.listed.push(path());
        }
    }
}
