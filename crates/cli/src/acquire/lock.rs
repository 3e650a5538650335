//! One process at a time: advisory locks on files, which the system drops when a process dies, however it dies.

use std::fs::{self, File, TryLockError};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::Progress;

/// Holds the lock until dropped. The file itself stays: removing it would race with others who wait for it.
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock at `path`, waiting for its holder if there is one (and saying so).
    pub fn take(path: &Path, progress: &dyn Progress) -> Result<Lock> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        }
        let file = File::options().create(true).truncate(false).read(true).write(true).open(path);
        let file = file.with_context(|| format!("cannot open the lock file {}", path.display()))?;
        let mut waited = false;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Lock { _file: file }),
                Err(TryLockError::WouldBlock) => {
                    if !waited {
                        progress.note(&format!("  waiting for another process that holds {}", path.display()));
                        waited = true;
                    }
                    if progress.stop() {
                        bail!("interrupted while waiting for {}", path.display());
                    }
                    sleep(Duration::from_millis(100));
                }
                // Some network file systems have no locks. Renames still keep what is complete apart from what is not.
                Err(TryLockError::Error(error)) if error.kind() == std::io::ErrorKind::Unsupported => {
                    return Ok(Lock { _file: file });
                }
                Err(TryLockError::Error(error)) => {
                    return Err(error).with_context(|| format!("cannot lock {}", path.display()));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Notes;
    use super::*;

    #[test]
    fn the_second_waits_for_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/lock");
        let first = Lock::take(&path, &Notes::default()).unwrap();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| {
                let notes = Notes::default();
                Lock::take(&path, &notes).unwrap();
                notes.text()
            });
            sleep(Duration::from_millis(250));
            assert!(!second.is_finished());
            drop(first);
            assert!(second.join().unwrap().contains("waiting for another process"));
        });
    }

    #[test]
    fn waiting_can_be_interrupted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let _first = Lock::take(&path, &Notes::default()).unwrap();
        let error = Lock::take(&path, &Notes::stopped()).err().unwrap().to_string();
        assert!(error.contains("interrupted"), "{error}");
    }
}
