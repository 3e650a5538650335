//! What is asked of the file system when a conversation is kept. Tests put a failing one in its place.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// Changes to files. Reading is not among them: what is read is checked anyway.
pub(crate) trait Disk: Send + Sync + std::fmt::Debug {
    /// Creates a file, or empties the one that is there.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Opens a file to write at its end, and creates it if there is none.
    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Gives a file another name; what had that name is replaced.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Has the names in a folder reach the disk.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
}

/// A file that is written.
pub(crate) trait DiskFile: Write + Send {
    /// Has its content reach the disk.
    fn sync(&mut self) -> io::Result<()>;
    /// Cuts it.
    fn truncate(&mut self, length: u64) -> io::Result<()>;
}

/// The disk that tests don't replace.
pub(crate) fn real() -> Arc<dyn Disk> {
    Arc::new(RealDisk)
}

#[derive(Debug)]
struct RealDisk;

impl Disk for RealDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(File::create(path)?))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(File::options().create(true).append(true).open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        // Elsewhere folders can't be opened as files, and names are synced with the files.
        if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
    }
}

impl DiskFile for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }
}

/// Writes a file so that under its name there is all of it or what was there before: beside, synced, renamed.
pub(crate) fn replace(
    disk: &dyn Disk,
    path: &Path,
    write: impl FnOnce(&mut dyn DiskFile) -> io::Result<()>,
) -> io::Result<()> {
    let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "this is not the path of a file");
    let name = path.file_name().ok_or_else(invalid)?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // The process is in the name, so that two of them don't write into one file.
    let mut partial = std::ffi::OsString::from(".");
    partial.push(name);
    partial.push(format!(".{}{PARTIAL}", std::process::id()));
    let partial = folder.join(partial);
    let written = (|| {
        let mut file = disk.create(&partial)?;
        write(&mut *file)?;
        file.sync()?;
        drop(file);
        disk.rename(&partial, path)
    })();
    if written.is_err() {
        // What is left would only take room.
        let _ = disk.remove(&partial);
    }
    written?;
    disk.sync_folder(folder)
}

/// How the names of unfinished files end.
pub(crate) const PARTIAL: &str = ".partial";
