//! Snapshots: checked copies of a cache at a position, in files.
//!
//! A snapshot holds the columns that the first `position` tokens have written, those tokens, and whose they are: the
//! package, its context, the layout of its states, the version that computed. It is used only where all of that is the
//! same, and where every checksum holds. One that can't be used costs time (the tokens are computed anew), never
//! correctness.
//!
//! `docs/sessions.md` describes the format.

mod error;
mod header;
mod layout;
pub(crate) mod store;

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

pub use error::SnapshotError;
pub use layout::{CacheLayout, CacheTensor};
pub use store::{PrefixStore, SnapshotLimits};

use crate::disk::{self, Disk};
use crate::{Error, Result, Runner};
use header::Header;
pub(crate) use header::digest;
pub(crate) use store::Shelf;

/// A snapshot in a file, of which everything but the cache itself has been read and checked.
#[derive(Debug)]
pub struct Snapshot {
    path: PathBuf,
    header: Header,
    tokens: Vec<u32>,
    bytes: u64,
    blocks_at: u64,
    file: BufReader<File>,
}

/// What was written to a snapshot, or read from one.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct SnapshotInfo {
    /// The file.
    pub path: PathBuf,
    /// How many tokens of the transcript it holds.
    pub position: usize,
    /// Its length in bytes.
    pub bytes: u64,
}

impl Snapshot {
    /// Opens a snapshot. What it is of is checked when it is used.
    ///
    /// # Errors
    /// [`Error::Snapshot`] when it can't be read, is of another format or does not match its checksums.
    pub fn open(path: &Path) -> Result<Self> {
        Self::read_start(path).map_err(|source| Error::snapshot(path, source))
    }

    fn read_start(path: &Path) -> Result<Self, SnapshotError> {
        let failed = SnapshotError::io("read");
        let metadata = fs::metadata(path).map_err(SnapshotError::io("read"))?;
        if !metadata.is_file() {
            // A pipe would block.
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")));
        }
        let file = File::open(path).map_err(failed)?;
        let bytes = file.metadata().map_err(SnapshotError::io("read"))?.len();
        let mut file = BufReader::with_capacity(1 << 16, file);
        let (header, tokens, blocks_at) = Header::read(&mut file, bytes)?;
        Ok(Self { path: path.to_owned(), header, tokens, bytes, blocks_at, file })
    }

    /// The tokens whose cache it holds.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// What there is to tell of it.
    pub fn info(&self) -> SnapshotInfo {
        SnapshotInfo { path: self.path.clone(), position: self.tokens.len(), bytes: self.bytes }
    }

    /// That it fits a runner: same build, context, package and layout.
    ///
    /// # Errors
    /// [`Error::Snapshot`] with what does not match.
    pub fn check<R: Runner>(&self, runner: &R) -> Result<()> {
        let layout = runner.cache_layout().ok_or(SnapshotError::Unsupported);
        layout.and_then(|layout| self.header.fits(layout)).map_err(|source| Error::snapshot(&self.path, source))
    }

    /// A new state that has read the snapshot's first `columns` tokens.
    pub(crate) fn load<R: Runner>(mut self, runner: &R, columns: usize) -> Result<R::State> {
        self.check(runner)?;
        let path = std::mem::take(&mut self.path);
        self.load_blocks(runner, columns).map_err(|source| Error::snapshot(&path, source))
    }

    fn load_blocks<R: Runner>(mut self, runner: &R, columns: usize) -> Result<R::State, SnapshotError> {
        let failed = |source| SnapshotError::State { source };
        let mut state = runner.new_state().map_err(failed)?;
        let (position, mut offset) = (self.header.position, self.blocks_at);
        let columns = columns.min(position);
        let mut bytes = Vec::new();
        for (index, block) in self.header.blocks().enumerate() {
            bytes.resize(block.bytes, 0);
            let mut sum = [0; 4];
            let read = self.file.read_exact(&mut bytes).and_then(|()| self.file.read_exact(&mut sum));
            read.map_err(SnapshotError::io("read"))?;
            let tensor = &self.header.states[block.tensor];
            if block_sum(index, &bytes) != sum {
                let what = format!("rows {} to {} of state `{}`", block.rows.start, block.rows.end, tensor.name);
                return Err(SnapshotError::Damaged { what, offset });
            }
            offset += bytes.len() as u64 + 4;
            let column = tensor.column_bytes();
            if columns < position {
                // Rows move together, each only as far as it is wanted.
                for row in 0..block.rows.len() {
                    bytes.copy_within(
                        row * position * column..(row * position + columns) * column,
                        row * columns * column,
                    );
                }
            }
            let bytes = &bytes[..block.rows.len() * columns * column];
            runner.write_columns(&mut state, block.tensor, block.rows, columns, bytes).map_err(failed)?;
        }
        Ok(state)
    }
}

/// Writes the cache of `tokens`, which `state` has read, to a file: all of it, or the file is as it was.
pub(crate) fn write<R: Runner>(
    disk: &dyn Disk,
    path: &Path,
    runner: &R,
    state: &R::State,
    tokens: &[u32],
) -> Result<SnapshotInfo> {
    let written = write_file(disk, path, runner, state, tokens);
    let bytes = written.map_err(|source| Error::snapshot(path, source))?;
    Ok(SnapshotInfo { path: path.to_owned(), position: tokens.len(), bytes })
}

fn write_file<R: Runner>(
    disk: &dyn Disk,
    path: &Path,
    runner: &R,
    state: &R::State,
    tokens: &[u32],
) -> Result<u64, SnapshotError> {
    let layout = runner.cache_layout().ok_or(SnapshotError::Unsupported)?;
    let header = Header::new(layout, tokens);
    let start = header.to_bytes(tokens);
    let (mut length, mut failed) = (start.len() as u64, None);
    let replaced = disk::replace(disk, path, |file| {
        file.write_all(&start)?;
        let mut bytes = Vec::new();
        for (index, block) in header.blocks().enumerate() {
            bytes.resize(block.bytes, 0);
            if let Err(source) = runner.read_columns(state, block.tensor, block.rows, tokens.len(), &mut bytes) {
                failed = Some(source);
                return Err(io::Error::other("the state cannot be read"));
            }
            bytes.extend_from_slice(&block_sum(index, &bytes));
            file.write_all(&bytes)?;
            length += bytes.len() as u64;
        }
        Ok(())
    });
    match (failed, replaced) {
        (Some(source), _) => Err(SnapshotError::State { source }),
        (None, Err(source)) => Err(SnapshotError::io("written")(source)),
        (None, Ok(())) => Ok(length),
    }
}

/// The checksum of a block, in which its place takes part.
fn block_sum(index: usize, bytes: &[u8]) -> [u8; 4] {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&(index as u64).to_le_bytes());
    hasher.update(bytes);
    hasher.finalize().to_le_bytes()
}

#[cfg(test)]
mod tests;
