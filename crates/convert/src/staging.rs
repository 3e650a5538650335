//! A folder that appears complete or not at all: it is made beside its destination and then moved there.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anemone_package::bundle;

use crate::error::{ConvertError, Result};

/// Writes a file and waits until it is on the disk.
pub(crate) fn write_synced(path: &Path, bytes: &[u8]) -> Result<()> {
    let write = || -> io::Result<()> {
        let mut file = File::create(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(|e| ConvertError::io(path, "write", e))
}

/// A folder beside the destination that becomes the destination.
pub(crate) struct Staging {
    dest: PathBuf,
    folder: PathBuf,
    /// Held while the conversion lives: a staging folder whose lock is free was left by a killed one.
    _lock: File,
    committed: bool,
}

const LOCK: &str = ".lock";

impl Staging {
    /// Makes the folder, where there is room for `needed` bytes and the destination is free, an empty folder or a converted
    /// model. Removes what killed conversions left.
    pub(crate) fn new(dest: &Path, needed: u64) -> Result<Self> {
        let name = dest.file_name().ok_or_else(|| ConvertError::Occupied {
            path: dest.to_owned(),
            found: "no name for a folder".to_owned(),
        })?;
        let parent = dest.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(parent).map_err(|e| ConvertError::io(parent, "create", e))?;
        check_free(dest)?;
        let prefix = format!(".{}.partial-", name.to_string_lossy());
        remove_leftovers(parent, &prefix);
        let free = fs4::available_space(parent).map_err(|e| ConvertError::io(parent, "ask for the free room of", e))?;
        if free < needed {
            return Err(ConvertError::DiskFull { path: parent.to_owned(), needed, free });
        }
        let folder = parent.join(format!("{prefix}{}", std::process::id()));
        fs::create_dir(&folder).map_err(|e| ConvertError::io(&folder, "create", e))?;
        let lock = folder.join(LOCK);
        let taken = File::create(&lock).and_then(|file| file.lock().map(|()| file));
        let taken = taken.map_err(|e| ConvertError::io(&lock, "lock", e))?;
        Ok(Self { dest: dest.to_owned(), folder, _lock: taken, committed: false })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }

    /// Moves the folder to its destination.
    pub(crate) fn commit(mut self) -> Result<()> {
        // Again: somebody may have put something there meanwhile.
        check_free(&self.dest)?;
        let _ = fs::remove_file(self.folder.join(LOCK));
        sync_folder(&self.folder)?;
        let parent = self.folder.parent().unwrap_or(Path::new(".")).to_owned();
        let old = self.folder.with_extension("old");
        if self.dest.exists() {
            fs::rename(&self.dest, &old).map_err(|e| ConvertError::io(&self.dest, "move aside", e))?;
        }
        if let Err(e) = fs::rename(&self.folder, &self.dest) {
            // Put back what was there.
            let _ = fs::rename(&old, &self.dest);
            return Err(ConvertError::io(&self.dest, "move the converted model to", e));
        }
        self.committed = true;
        sync_folder(&parent)?;
        let _ = fs::remove_dir_all(&old);
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.committed {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// What a conversion writes into its folder, and may therefore replace.
const OURS: [&str; 5] =
    [bundle::MANIFEST, bundle::PACKAGE, bundle::TOKENIZER, bundle::CHAT_TEMPLATE, bundle::GENERATION];

/// Refuses a destination that holds anything but a converted model: what somebody put there is theirs.
fn check_free(dest: &Path) -> Result<()> {
    let occupied = |found: String| Err(ConvertError::Occupied { path: dest.to_owned(), found });
    let entries = match fs::read_dir(dest) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) if e.kind() == io::ErrorKind::NotADirectory => return occupied("a file".to_owned()),
        Err(e) => return Err(ConvertError::io(dest, "read", e)),
    };
    let mut empty = true;
    for entry in entries {
        let name = entry.map_err(|e| ConvertError::io(dest, "read", e))?.file_name();
        if !OURS.iter().any(|ours| name == *ours) {
            return occupied(format!("{:?}, which no conversion wrote", name.to_string_lossy()));
        }
        empty = false;
    }
    if empty || dest.join(bundle::MANIFEST).is_file() {
        return Ok(());
    }
    occupied(format!("a folder without {}", bundle::MANIFEST))
}

/// Removes staging folders of conversions that were killed.
fn remove_leftovers(parent: &Path, prefix: &str) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(prefix) {
            continue;
        }
        let alive = File::open(entry.path().join(LOCK)).is_ok_and(|f| f.try_lock().is_err());
        if !alive {
            tracing::debug!(path = %entry.path().display(), "removing what a killed conversion left");
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn sync_folder(path: &Path) -> Result<()> {
    if cfg!(unix) {
        File::open(path).and_then(|f| f.sync_all()).map_err(|e| ConvertError::io(path, "sync", e))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder as a conversion leaves it.
    fn converted(dest: &Path) {
        let staging = Staging::new(dest, 0).unwrap();
        fs::create_dir(staging.path().join(bundle::PACKAGE)).unwrap();
        write_synced(&staging.path().join(bundle::MANIFEST), b"{}").unwrap();
        staging.commit().unwrap();
    }

    #[test]
    fn a_converted_model_is_replaced_but_never_what_somebody_put_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let dest = dir.path().join("model");
        converted(&dest);
        converted(&dest);
        fs::create_dir(dest.join("mine")).unwrap();
        fs::write(dest.join("mine/notes.txt"), "precious").unwrap();
        let error = Staging::new(&dest, 0).map(drop).unwrap_err().to_string();
        assert!(error.contains("mine"), "{error}");
        assert_eq!(fs::read_to_string(dest.join("mine/notes.txt")).unwrap(), "precious");
    }

    #[test]
    fn what_is_put_there_during_a_conversion_stays_too() {
        let dir = tempfile::tempdir().unwrap();
        let dest = dir.path().join("model");
        converted(&dest);
        let staging = Staging::new(&dest, 0).unwrap();
        fs::write(dest.join("notes.txt"), "precious").unwrap();
        assert!(matches!(staging.commit(), Err(ConvertError::Occupied { .. })));
        assert_eq!(fs::read_to_string(dest.join("notes.txt")).unwrap(), "precious");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no staging folder is left");
    }
}
