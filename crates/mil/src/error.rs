//! Why a program could not be read, written or loaded: [`MilError`].

use anemone_package::PackageError;

use crate::place::{OneLine, Place};
use crate::verify::Diagnostic;

/// Why a program could not be read, written or loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MilError {
    /// The package itself could not be opened or written.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// Something that is no program, in a package or about to be written to one.
    #[error("{}", OneLine(format_args!("{place}: expected {expected}, found {found}")))]
    Malformed {
        /// Where.
        place: Place,
        /// What would be right.
        expected: String,
        /// What is there.
        found: String,
    },
    /// A package holds what a [`Model`](crate::Model) has no room for, and it would be lost if the model were written.
    #[error("writing the model would lose {}; clear `Model::left_out` to lose it knowingly", all.join(", "))]
    LeftOut {
        /// What would be lost.
        all: Vec<String>,
    },
    /// The elements of a constant that are made when the package is written could not be made or written.
    #[error("{place}: cannot write the elements: {source}")]
    Elements {
        /// Where the constant is.
        place: Place,
        /// What went wrong.
        source: std::io::Error,
    },
    /// The text is not that of a program.
    #[error("line {line}, column {column}: expected {expected}, found {found}")]
    Text {
        /// From 1.
        line: usize,
        /// In characters, from 1.
        column: usize,
        /// What would be right.
        expected: String,
        /// What is there.
        found: String,
    },
    /// The program uses operations that are not in the registry: all of them, at once.
    #[error("{}", unknown(all))]
    UnknownOps {
        /// One diagnostic each, all of [`Problem::UnknownOp`](crate::Problem::UnknownOp).
        all: Vec<Diagnostic>,
    },
    /// The program is not valid.
    #[error("the program is not valid; {} wrong:{}", count(all.len(), "thing is", "things are"), lines(all))]
    Invalid {
        /// Everything that is wrong with it.
        all: Vec<Diagnostic>,
    },
}

fn count(n: usize, one: &str, more: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { more })
}

/// Diagnostics in messages: one a line, the first ones.
fn lines(all: &[Diagnostic]) -> String {
    const SHOWN: usize = 50;
    let mut text: String = all.iter().take(SHOWN).map(|d| format!("\n  {d}")).collect();
    if all.len() > SHOWN {
        text.push_str(&format!("\n  and {} more", all.len() - SHOWN));
    }
    text
}

/// Unknown operations by name, each with its first places.
fn unknown(all: &[Diagnostic]) -> String {
    const PLACES: usize = 5;
    let by_name = crate::verify::unknown_ops(all);
    let mut text = format!("{} not supported:", count(by_name.len(), "operation is", "operations are"));
    for ((name, opset), places) in by_name {
        text.push_str(&format!(
            "\n  {}, {}:",
            OneLine(format_args!("`{name}` of operation set {opset}")),
            count(places.len(), "time", "times")
        ));
        places.iter().take(PLACES).for_each(|p| text.push_str(&format!("\n    {}", OneLine(p))));
        if places.len() > PLACES {
            text.push_str(&format!("\n    and {} more", places.len() - PLACES));
        }
    }
    text.push_str("\nConvert the model without them, or ask for them by name.");
    text
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
