//! What must hold of the tree itself, whatever the code computes.
//!
//! Each check returns its complaints, a line each; the test `tests/tidy.rs` fails if there is any.

use std::fs;

use anyhow::{Context, Result};

use crate::{output_of, root};

mod layers;
mod lengths;
mod unsafety;
mod words;

/// A text file of the tree.
pub struct Text {
    /// Path from the root, with forward slashes.
    pub path: String,
    /// Its content.
    pub text: String,
}

impl Text {
    /// Whether this is Rust source.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Its lines, numbered from 1.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

/// What there is to say about a tree.
#[derive(Default)]
pub struct Report {
    /// What has to change before this can land.
    pub errors: Vec<String>,
    /// What is worth a look.
    pub warnings: Vec<String>,
}

/// Runs all checks over the files that git knows or would add.
pub fn check() -> Result<Report> {
    let texts = texts()?;
    let metadata = output_of("cargo", &["metadata", "--format-version=1", "--no-deps", "--locked"])?;
    let metadata = serde_json::from_str(&metadata).context("cargo metadata is not JSON")?;
    let mut report = Report { errors: layers::check(&metadata), warnings: Vec::new() };
    for text in &texts {
        report.errors.extend(words::check(text));
        if text.is_rust() {
            report.errors.extend(unsafety::check(text));
            lengths::check(text, &mut report);
        }
    }
    Ok(report)
}

/// All text files of the tree. Binary files (with a NUL, or not UTF-8) are not looked into.
pub fn texts() -> Result<Vec<Text>> {
    let listing = output_of("git", &["ls-files", "--cached", "--others", "--exclude-standard", "-z"])?;
    let mut texts = Vec::new();
    for path in listing.split('\0').filter(|path| !path.is_empty()) {
        // A file that was removed but not yet from the index is listed still.
        let Ok(bytes) = fs::read(root().join(path)) else { continue };
        match String::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => texts.push(Text { path: path.to_owned(), text }),
            _ => {}
        }
    }
    Ok(texts)
}
