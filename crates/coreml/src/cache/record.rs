//! What a complete compiled package is: files and bytes, written down beside it.

use std::fs;
use std::path::Path;

use super::at;
use crate::Result;

/// How many files a compiled package has, and their bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    files: u64,
    bytes: u64,
}

const NAME: &str = "complete";
/// Folders in folders are not followed further.
const MAX_DEPTH: usize = 16;

impl Record {
    pub(super) fn of(model: &Path) -> Result<Self> {
        let mut record = Self { files: 0, bytes: 0 };
        record.add(model, 0).map_err(at(model, "counting its files"))?;
        Ok(record)
    }

    fn add(&mut self, folder: &Path, depth: usize) -> std::io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            if metadata.is_dir() && depth < MAX_DEPTH {
                self.add(&entry.path(), depth + 1)?;
            } else {
                self.files += 1;
                self.bytes += metadata.len();
            }
        }
        Ok(())
    }

    fn text(&self) -> String {
        format!("{} files, {} bytes\n", self.files, self.bytes)
    }

    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        let path = folder.join(NAME);
        fs::write(&path, self.text()).map_err(at(&path, "writing"))
    }

    /// Whether the model in `folder` is as it was written.
    pub(super) fn holds(folder: &Path, model: &Path) -> bool {
        let written = fs::read_to_string(folder.join(NAME));
        written.is_ok_and(|text| Self::of(model).is_ok_and(|found| found.text() == text && found.files > 0))
    }
}
