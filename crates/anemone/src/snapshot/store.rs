//! Folders of snapshots, bounded in number and bytes. What was used longest ago goes first.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use anemone_package::bundle::hex;

use super::{Snapshot, SnapshotError, SnapshotInfo, digest};
use crate::disk::{self, Disk, PARTIAL};
use crate::{Error, Result, Runner};

/// How the names of snapshots end.
const ENDING: &str = ".snapshot";

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotLimits {
    /// Most snapshots.
    pub count: usize,
    /// Most bytes of them all.
    pub bytes: u64,
}

/// A snapshot's file.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) used: SystemTime,
}

/// A folder of snapshots.
#[derive(Clone, Debug)]
pub(crate) struct Shelf {
    pub(crate) folder: PathBuf,
    pub(crate) limits: SnapshotLimits,
    pub(crate) disk: Arc<dyn Disk>,
}

/// What a shelf has for some tokens.
pub(crate) struct Best {
    /// Snapshots that hold a beginning of them, with its length, the longest first.
    pub(crate) snapshots: Vec<(Snapshot, usize)>,
    /// Why others can't be used.
    pub(crate) unusable: Vec<Error>,
}

impl Shelf {
    /// Keeps the cache of `tokens`, and removes what is beyond the limits then.
    pub(crate) fn put<R: Runner>(&self, runner: &R, state: &R::State, tokens: &[u32]) -> Result<SnapshotInfo> {
        let layout = runner.cache_layout().ok_or_else(|| Error::snapshot(&self.folder, SnapshotError::Unsupported))?;
        let column: u64 = layout.tensors.iter().map(|t| (t.rows() * t.column_bytes()) as u64).sum();
        let (needed, limit) = (column * tokens.len() as u64, self.limits.bytes);
        let name = format!("{}-{}-{}{ENDING}", package_name(&layout.package), tokens.len(), &digest(tokens)[..16]);
        let path = self.folder.join(name);
        if needed > limit || self.limits.count == 0 {
            return Err(Error::snapshot(&path, SnapshotError::TooLarge { needed, limit }));
        }
        fs::create_dir_all(&self.folder)
            .map_err(|source| Error::snapshot(&path, SnapshotError::Io { what: "written", source }))?;
        let written = super::write(&*self.disk, &path, runner, state, tokens)?;
        self.trim(&path);
        Ok(written)
    }

    /// The snapshots that hold a beginning of `tokens` of at least `least` tokens. With `own`, only those of the runner's
    /// package are looked at.
    pub(crate) fn best<R: Runner>(&self, runner: &R, tokens: &[u32], least: usize, own: bool) -> Best {
        let mut best = Best { snapshots: Vec::new(), unusable: Vec::new() };
        let Some(layout) = runner.cache_layout() else { return best };
        let package = package_name(&layout.package);
        for item in items(&self.folder) {
            let name = item.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if own && !name.starts_with(&package) {
                continue;
            }
            let opened = Snapshot::open(&item.path).and_then(|snapshot| snapshot.check(runner).map(|()| snapshot));
            let snapshot = match opened {
                Ok(snapshot) => snapshot,
                Err(error) => {
                    best.unusable.push(error);
                    continue;
                }
            };
            let common = snapshot.tokens().iter().zip(tokens).take_while(|(a, b)| a == b).count();
            if common >= least.max(1) {
                best.snapshots.push((snapshot, common));
            }
        }
        best.snapshots.sort_by_key(|(_, common)| std::cmp::Reverse(*common));
        best
    }

    /// Removes what was used longest ago until the limits hold. `newest` stays.
    fn trim(&self, newest: &Path) {
        let (mut count, mut bytes) = (0, 0);
        for item in items(&self.folder) {
            count += 1;
            bytes += item.bytes;
            if (count > self.limits.count || bytes > self.limits.bytes) && item.path != newest {
                self.discard(&item);
                count -= 1;
                bytes -= item.bytes;
            }
        }
    }

    fn discard(&self, item: &Item) {
        match self.disk.remove(&item.path) {
            Ok(()) => tracing::debug!(path = %item.path.display(), "removed a snapshot"),
            Err(error) => tracing::warn!("{}: cannot be removed: {error}", item.path.display()),
        }
    }

    /// Removes files that a killed process left unfinished. Nobody else may write to the folder meanwhile.
    pub(crate) fn sweep(&self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().ends_with(PARTIAL) {
                let _ = self.disk.remove(&entry.path());
            }
        }
    }
}

/// Removes snapshots in all of `folders` until they hold at most `limit` bytes, except `newest`.
pub(crate) fn trim_all(folders: impl Iterator<Item = PathBuf>, limit: u64, newest: &Path, disk: &dyn Disk) {
    let mut all: Vec<Item> = folders.flat_map(|folder| items(&folder)).collect();
    all.sort_by_key(|kept| std::cmp::Reverse(kept.used));
    let mut bytes = all.iter().filter(|item| item.path == newest).map(|item| item.bytes).sum::<u64>();
    for item in all.iter().filter(|item| item.path != newest) {
        bytes += item.bytes;
        if bytes > limit && disk.remove(&item.path).is_ok() {
            bytes -= item.bytes;
        }
    }
}

/// Says that a snapshot was used just now.
pub(crate) fn touch(path: &Path) {
    let touched = File::options().append(true).open(path).and_then(|file| file.set_modified(SystemTime::now()));
    if let Err(error) = touched {
        tracing::debug!("{}: {error}", path.display());
    }
}

/// The snapshots in a folder, the latest used first.
pub(crate) fn items(folder: &Path) -> Vec<Item> {
    let mut all: Vec<Item> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().ends_with(ENDING))
        .filter_map(|entry| {
            let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            Some(Item { path: entry.path(), bytes: metadata.len(), used })
        })
        .collect();
    all.sort_by(|a, b| b.used.cmp(&a.used).then_with(|| a.path.cmp(&b.path)));
    all
}

fn package_name(digest: &[u8; 32]) -> String {
    hex(&digest[..6])
}

/// Snapshots of beginnings that many conversations share, such as a long system message, for any process.
///
/// A session that is given the store ([`Session::set_prefixes`](crate::Session::set_prefixes)) looks here before it
/// computes a long prompt.
#[derive(Debug)]
pub struct PrefixStore {
    shelf: Shelf,
}

impl PrefixStore {
    /// A store in a folder, which need not exist yet.
    pub fn new(folder: impl Into<PathBuf>, limits: SnapshotLimits) -> Self {
        Self { shelf: Shelf { folder: folder.into(), limits, disk: disk::real() } }
    }

    /// Keeps a cache. Processes that keep something at the same time wait for each other.
    pub(crate) fn put<R: Runner>(&self, runner: &R, state: &R::State, tokens: &[u32]) -> Result<SnapshotInfo> {
        let failed = |source| Error::snapshot(&self.shelf.folder, SnapshotError::Io { what: "written", source });
        fs::create_dir_all(&self.shelf.folder).map_err(failed)?;
        let lock = self.shelf.folder.join("lock");
        let lock = File::options().create(true).truncate(false).write(true).open(lock).map_err(failed)?;
        match lock.lock() {
            Ok(()) => self.shelf.sweep(),
            // Some network file systems have no locks; names and checksums still keep what is complete apart.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(error) => return Err(failed(error)),
        }
        self.shelf.put(runner, state, tokens)
    }

    /// The state of the longest beginning of `tokens` that is kept, with its length, if that is at least `least`.
    /// Whatever can't be used is passed over.
    pub(crate) fn state_for<R: Runner>(&self, runner: &R, tokens: &[u32], least: usize) -> Option<(R::State, usize)> {
        let Best { snapshots, mut unusable } = self.shelf.best(runner, tokens, least, true);
        let mut found = None;
        for (snapshot, columns) in snapshots {
            let path = snapshot.info().path;
            match snapshot.load(runner, columns) {
                Ok(state) => {
                    touch(&path);
                    found = Some((state, columns));
                    break;
                }
                Err(error) => unusable.push(error),
            }
        }
        unusable.iter().for_each(|error| tracing::warn!("{error}; it is not used"));
        found
    }

    /// What is kept, the latest used first.
    pub fn list(&self) -> Vec<SnapshotInfo> {
        let opened = items(&self.shelf.folder).into_iter().map(|item| Snapshot::open(&item.path));
        opened.flatten().map(|snapshot| snapshot.info()).collect()
    }
}
