//! The folder in which a package or a bundle is written, and how it gets to its destination.
//!
//! The folder is a hidden sibling of the destination. While its process lives, its manifest is locked, which is how a
//! writer tells another's folder from what a killed process left behind.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::PackageError;

/// An empty staging folder is either a killed process's or was made this very moment; it is left alone until it is older
/// than this.
const FRESH: Duration = Duration::from_secs(60);

/// What stands in the way in a folder that is to be replaced; nothing in one that may be.
pub type InTheWay = fn(folder: &Path) -> io::Result<Option<String>>;

/// A folder that becomes another one, complete or not at all.
///
/// A folder that is at the destination already is replaced at once where the system can exchange two folders (Linux,
/// macOS), otherwise by two renames. Dropped without a [`commit`](Self::commit), it is removed; that of a killed process is
/// removed by the next one for the same destination. Several may be in progress for one destination: the last wins.
#[derive(Debug)]
pub struct Staging {
    dest: PathBuf,
    /// The file name of the manifest, which completes the folder.
    manifest_name: &'static str,
    in_the_way: InTheWay,
    parent: PathBuf,
    folder: PathBuf,
    /// The manifest; locked, empty until the package is complete.
    manifest: Option<File>,
}

impl Staging {
    /// Clears away what killed writers of `dest` left, and makes a new folder, in which `manifest_name` is for
    /// [`commit`](Self::commit) to write. A folder at `dest` may be replaced if it is empty or has nothing
    /// [`InTheWay`], which is asked now and when the new one is complete.
    ///
    /// # Errors
    /// If the folder of `dest` does not exist, if `dest` is a link or anything that may not be replaced, or if the system
    /// refuses.
    pub fn create(dest: &Path, manifest_name: &'static str, in_the_way: InTheWay) -> Result<Self, PackageError> {
        let invalid = |reason: &str| PackageError::Invalid { path: dest.to_owned(), reason: reason.into() };
        let name = dest.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| invalid("the path does not end with a name in Unicode to write under"))?;
        let parent = dest.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !parent.is_dir() {
            return Err(invalid("the folder that it should be in does not exist"));
        }
        // As in `m/.`, which cannot be renamed.
        let dest = &parent.join(name);
        clear_leftovers(dest, parent, name, manifest_name);
        check_dest(dest, in_the_way)?;
        for _ in 0..16 {
            let folder = parent.join(format!("{}{}.partial", prefix(name), token()));
            match fs::create_dir(&folder) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                // The hidden name says nothing to anybody.
                result => result.map_err(PackageError::io("make a folder in", parent))?,
            }
            let (dest, parent) = (dest.to_owned(), parent.to_owned());
            // From here on dropping it removes the folder.
            let mut staging = Self { dest, manifest_name, in_the_way, parent, folder, manifest: None };
            if staging.lock()? {
                return Ok(staging);
            }
        }
        Err(invalid("other writers of it keep removing what this one begins"))
    }

    /// Whether [`Self::create`] would be refused because of what is there. Nothing is written.
    ///
    /// # Errors
    /// [`PackageError::Occupied`] if there is anything else, or what kept it from being looked at.
    pub fn check(dest: &Path, in_the_way: InTheWay) -> Result<(), PackageError> {
        check_dest(dest, in_the_way)
    }

    /// Makes and locks the manifest; `false` if another writer mistook the folder for a leftover before it was locked.
    fn lock(&mut self) -> Result<bool, PackageError> {
        let path = self.folder.join(self.manifest_name);
        let file = match File::options().write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            result => result.map_err(PackageError::io("create", &path))?,
        };
        // Some file systems have no locks; there, leftovers stay, for nobody can tell them.
        let refused = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        self.manifest = Some(file);
        Ok(!refused && path.exists())
    }

    /// Where to write.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn dest(&self) -> &Path {
        &self.dest
    }

    /// Completes the folder with its manifest and puts it at its destination.
    ///
    /// # Errors
    /// If the system refuses, or something else came to be at the destination meanwhile.
    pub fn commit(mut self, manifest: &[u8]) -> Result<(), PackageError> {
        let mut file = self.manifest.take().expect("a writer commits once");
        let path = self.folder.join(self.manifest_name);
        file.write_all(manifest).and_then(|()| file.sync_all()).map_err(PackageError::io("write", &path))?;
        sync_folders(&self.folder)?;
        check_dest(&self.dest, self.in_the_way)?;
        if cfg!(windows) {
            // An open file would keep its folder from being renamed.
            drop(file);
        } else {
            self.manifest = Some(file);
        }
        if self.dest.exists() {
            self.replace()?;
        } else {
            fs::rename(&self.folder, &self.dest).map_err(PackageError::io("rename", &self.folder))?;
        }
        sync_folder(&self.parent)
    }

    /// Replaces the package at the destination; afterwards the old one is at `folder`, or gone.
    fn replace(&self) -> Result<(), PackageError> {
        exchange(&self.folder, &self.dest).or_else(|_| self.replace_by_renames())
    }

    /// Where two folders cannot be exchanged. A kill between the renames leaves nothing at the destination; the next
    /// writer puts the old package back.
    fn replace_by_renames(&self) -> Result<(), PackageError> {
        let old = self.folder.with_extension("old");
        fs::rename(&self.dest, &old).map_err(PackageError::io("rename", &self.dest))?;
        if let Err(error) = fs::rename(&self.folder, &self.dest) {
            // Should this fail too, the next writer puts it back.
            let _ = fs::rename(&old, &self.dest);
            return Err(PackageError::io("rename", &self.folder)(error));
        }
        let _ = fs::remove_dir_all(old);
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if cfg!(windows) {
            self.manifest = None;
        }
        // After a commit this is the package that was replaced, or nothing. If it cannot be removed, the next writer tries.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn prefix(name: &str) -> String {
    format!(".{name}.anemone-")
}

/// Differs between all writers of this machine.
fn token() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Only an empty folder, or one without anything in the way, may be replaced.
fn check_dest(dest: &Path, in_the_way: InTheWay) -> Result<(), PackageError> {
    let occupied = |found: String| Err(PackageError::Occupied { path: dest.to_owned(), found });
    let metadata = match dest.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        result => result.map_err(PackageError::io("open", dest))?,
    };
    if metadata.is_symlink() {
        return occupied("a link; give the path that it leads to".into());
    }
    if !metadata.is_dir() {
        return occupied("a file".into());
    }
    if fs::read_dir(dest).map_err(PackageError::io("read", dest))?.next().is_none() {
        return Ok(());
    }
    in_the_way(dest).map_err(PackageError::io("read", dest))?.map_or(Ok(()), occupied)
}

/// Removes what killed writers of `dest` left, and puts back a package that one of them had moved aside. What cannot be
/// removed stays.
fn clear_leftovers(dest: &Path, parent: &Path, name: &str, manifest_name: &str) {
    let prefix = prefix(name);
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let file_name = entry.file_name();
        let Some(rest) = file_name.to_str().and_then(|name| name.strip_prefix(&prefix)) else { continue };
        let folder = entry.path();
        let Some((token, kind)) = rest.split_once('.') else { continue };
        if !token.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
            continue;
        }
        if kind == "partial" && !in_use(&folder, manifest_name) {
            let _ = fs::remove_dir_all(folder);
        } else if kind == "old" && !in_use(&folder.with_extension("partial"), manifest_name) {
            if dest.symlink_metadata().is_err() {
                let _ = fs::rename(folder, dest);
            } else {
                let _ = fs::remove_dir_all(folder);
            }
        }
    }
}

/// Whether a live process writes in this staging folder. In doubt, yes.
fn in_use(folder: &Path, manifest_name: &str) -> bool {
    match File::options().read(true).write(true).open(folder.join(manifest_name)) {
        Ok(file) => file.try_lock().is_err(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // The manifest is made first, so a folder with other files only is one whose removal was cut short.
            if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
                return false;
            }
            let age = folder.metadata().and_then(|metadata| metadata.modified()).map(|time| time.elapsed());
            matches!(age, Ok(Ok(age)) if age < FRESH)
        }
        Err(_) => true,
    }
}

/// Exchanges two folders at once.
#[cfg(any(target_os = "linux", target_vendor = "apple"))]
fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE)?)
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Waits until the entries of a folder and of all folders below it are on the disk. (The files are, each by its own.)
fn sync_folders(folder: &Path) -> Result<(), PackageError> {
    for entry in fs::read_dir(folder).map_err(PackageError::io("read", folder))? {
        let entry = entry.map_err(PackageError::io("read", folder))?;
        if entry.file_type().map_err(PackageError::io("read", folder))?.is_dir() {
            sync_folders(&entry.path())?;
        }
    }
    sync_folder(folder)
}

fn sync_folder(folder: &Path) -> Result<(), PackageError> {
    if cfg!(unix) {
        File::open(folder).and_then(|file| file.sync_all()).map_err(PackageError::io("sync", folder))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
