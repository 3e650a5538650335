//! A file system that fails at the n-th operation.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::disk::{self, Disk, DiskFile};

/// Counts what is asked of it. The operation with a number fails, half done if it is a write; with `crash` so do all
/// that come after it, as if the process had been killed there.
#[derive(Clone, Debug)]
pub(crate) struct Faulty {
    count: Arc<AtomicUsize>,
    at: Arc<AtomicUsize>,
    crash: bool,
    disk: Arc<dyn Disk>,
}

impl Faulty {
    pub(crate) fn at(at: usize, crash: bool) -> Self {
        Self { count: Arc::default(), at: Arc::new(AtomicUsize::new(at)), crash, disk: disk::real() }
    }

    pub(crate) fn never() -> Self {
        Self::at(usize::MAX, false)
    }

    /// How many operations there were.
    pub(crate) fn operations(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    fn step(&self) -> io::Result<()> {
        let (now, at) = (self.count.fetch_add(1, Ordering::SeqCst), self.at.load(Ordering::SeqCst));
        if now == at || self.crash && now > at {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "no space left, says the test"));
        }
        Ok(())
    }

    fn file(&self, inner: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        Box::new(FaultyFile { inner, faulty: self.clone() })
    }
}

impl Disk for Faulty {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.step()?;
        self.disk.create(path).map(|file| self.file(file))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.step()?;
        self.disk.append(path).map(|file| self.file(file))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step()?;
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        self.disk.remove(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        self.disk.sync_folder(path)
    }
}

struct FaultyFile {
    inner: Box<dyn DiskFile>,
    faulty: Faulty,
}

impl Write for FaultyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.faulty.step() {
            Ok(()) => self.inner.write_all(bytes).map(|()| bytes.len()),
            Err(error) => {
                self.inner.write_all(&bytes[..bytes.len() / 2])?;
                Err(error)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl DiskFile for FaultyFile {
    fn sync(&mut self) -> io::Result<()> {
        self.faulty.step()?;
        self.inner.sync()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.faulty.step()?;
        self.inner.truncate(length)
    }
}
