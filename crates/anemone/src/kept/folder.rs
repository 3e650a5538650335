//! The folder of one session, held by one process at a time.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{KeepError, KeepLimits};
use crate::disk::Disk;
use crate::snapshot::{Shelf, store};

/// The log's name.
pub(crate) const LOG: &str = "log";
/// The folder of snapshots.
pub(crate) const SNAPSHOTS: &str = "snapshots";
const LOCK: &str = "lock";
const OWNER: &str = "owner";

/// A session's folder that no other process has. Dropping it lets go.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) folder: PathBuf,
    root: PathBuf,
    pub(crate) limits: KeepLimits,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) shelf: Shelf,
    /// Whether there was no such folder before.
    is_made: bool,
    _lock: File,
}

impl Held {
    /// Takes a folder, which is created if it is not there.
    pub(super) fn take(
        folder: &Path,
        root: &Path,
        limits: KeepLimits,
        disk: &Arc<dyn Disk>,
    ) -> Result<Self, KeepError> {
        let failed = |what| move |source| KeepError::Io { what, source };
        fs::create_dir_all(root).map_err(failed("created"))?;
        let is_made = match fs::create_dir(folder) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(failed("created")(error)),
        };
        let lock = File::options().create(true).truncate(false).write(true).open(folder.join(LOCK));
        let lock = lock.map_err(|source| {
            if is_made {
                // Only if it is empty.
                let _ = fs::remove_dir(folder);
            }
            failed("locked")(source)
        })?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let owner = fs::read_to_string(folder.join(OWNER)).ok().and_then(|pid| pid.trim().parse().ok());
                return Err(KeepError::Locked { owner });
            }
            // Some network file systems have no locks.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                tracing::warn!("{}: this file system has no locks", folder.display());
            }
            Err(TryLockError::Error(error)) => return Err(failed("locked")(error)),
        }
        // Only for messages.
        if let Err(error) = fs::write(folder.join(OWNER), std::process::id().to_string()) {
            tracing::debug!("{}: {error}", folder.display());
        }
        let shelf = Self::shelf(folder, limits, disk);
        let (folder, root, disk) = (folder.to_owned(), root.to_owned(), Arc::clone(disk));
        Ok(Self { folder, root, limits, disk, shelf, is_made, _lock: lock })
    }

    /// Removes the log that could not be begun and, if it was made for that, the folder.
    pub(crate) fn abandon(self) {
        let gone = match self.disk.remove(&self.log()) {
            Err(error) => error.kind() == io::ErrorKind::NotFound,
            Ok(()) => true,
        };
        if gone && self.is_made {
            let removed = fs::remove_file(self.folder.join(OWNER)).or_else(super::gone_already);
            let removed = removed.and_then(|()| fs::remove_file(self.folder.join(LOCK)));
            if let Err(error) = removed.and_then(|()| fs::remove_dir(&self.folder)) {
                tracing::debug!("{}: {error}", self.folder.display());
            }
        }
    }

    /// The snapshots in a folder.
    pub(super) fn shelf(folder: &Path, limits: KeepLimits, disk: &Arc<dyn Disk>) -> Shelf {
        Shelf { folder: folder.join(SNAPSHOTS), limits: limits.each(), disk: Arc::clone(disk) }
    }

    /// The log's path.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join(LOG)
    }

    /// Removes the snapshots of all sessions that were used longest ago, until they are no more than may be kept.
    pub(crate) fn trim(&self, newest: &Path) {
        let sessions = fs::read_dir(&self.root).into_iter().flatten().flatten();
        store::trim_all(sessions.map(|entry| entry.path().join(SNAPSHOTS)), self.limits.bytes, newest, &*self.disk);
    }
}
