//! Why a program could not be read, written or loaded: [`MilError`].

use crate::place::Place;

/// Why a program could not be read, written or loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MilError {
    /// The file holds something that is not a program.
    #[error("{place}: expected {expected}, found {found}")]
    Malformed {
        /// Where.
        place: Place,
        /// What would be right.
        expected: String,
        /// What is there.
        found: String,
    },
}

/// Something malformed whose place is still to be added.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) part: Option<String>,
    pub(crate) expected: String,
    pub(crate) found: String,
}

impl Fault {
    pub(crate) fn new(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self { part: None, expected: expected.into(), found: found.into() }
    }

    /// Names the part that is at fault, unless something deeper already did.
    pub(crate) fn in_part(mut self, part: impl FnOnce() -> String) -> Self {
        self.part.get_or_insert_with(part);
        self
    }

    pub(crate) fn at(self, mut place: Place) -> MilError {
        place.part = self.part.or(place.part);
        MilError::Malformed { place, expected: self.expected, found: self.found }
    }
}
