//! Compiled packages, kept: the first compile for the Neural Engine can take minutes, and later ones need not.
//!
//! Core ML's own caches are by path, so a compiled package stays at one path for good, named by what it depends on: the
//! package's digest, the system's build, and the compute units.

mod record;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::{ComputeUnits, CoreMlError, Framework, Result};
use record::Record;

/// A folder with compiled packages.
#[derive(Clone, Debug)]
pub struct CompileCache {
    root: PathBuf,
}

/// What happens on the way to a compiled package.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// Another process is compiling; this one waits for it.
    Waiting,
    /// It is the first run of this package on this system: it is compiled, which can take minutes.
    FirstRun,
    /// It is compiled.
    Done(Duration),
}

/// A compiled package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// The `.mlmodelc`.
    pub path: PathBuf,
    /// Whether it was compiled just now.
    pub fresh: bool,
}

const MODEL: &str = "model.mlmodelc";

impl CompileCache {
    /// A cache in `root`, which is made when it is first needed.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The folder's name for a package: digest, build, units.
    #[must_use]
    pub fn key(digest: &[u8; 32], os_build: &str, units: ComputeUnits) -> String {
        let digest: String = digest[..16].iter().map(|b| format!("{b:02x}")).collect();
        // The build comes from the system; a name must not lead elsewhere.
        let build: String = os_build.chars().filter(char::is_ascii_alphanumeric).take(24).collect();
        format!("{digest}-{}-{units}", if build.is_empty() { "unknown" } else { &build })
    }

    /// The compiled form of `package`, compiled now if it is not there yet. What was compiled on other builds of the system
    /// is then removed. Several processes may ask at the same time: one compiles, the others wait.
    ///
    /// # Errors
    /// [`CoreMlError::Failed`] from the compiler, [`CoreMlError::Cache`] from the disk.
    pub fn get<F: Framework>(
        &self,
        framework: &F,
        package: &Path,
        digest: &[u8; 32],
        units: ComputeUnits,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<Compiled> {
        let key = Self::key(digest, &framework.os_build(), units);
        let folder = self.root.join(&key);
        let path = folder.join(MODEL);
        if Record::holds(&folder, &path) {
            return Ok(Compiled { path, fresh: false });
        }
        fs::create_dir_all(&self.root).map_err(at(&self.root, "making the folder"))?;
        let _lock = self.lock(&key, tell)?;
        // Whoever held the lock may have compiled it.
        if Record::holds(&folder, &path) {
            return Ok(Compiled { path, fresh: false });
        }
        tell(Progress::FirstRun);
        tracing::info!(package = %package.display(), %units, "compiling, which can take minutes the first time");
        let begin = Instant::now();
        let made = framework.compile(package).map_err(|failure| CoreMlError::Failed {
            operation: format!("compiling {}", package.display()),
            failure,
        })?;
        let staged = self.root.join(format!("{key}.part"));
        remove(&staged)?;
        fs::create_dir(&staged).map_err(at(&staged, "making the folder"))?;
        move_folder(&made, &staged.join(MODEL))?;
        Record::of(&staged.join(MODEL))?.write(&staged)?;
        remove(&folder)?;
        fs::rename(&staged, &folder).map_err(at(&folder, "giving it its name"))?;
        self.remove_other_builds(digest, &key, units);
        tell(Progress::Done(begin.elapsed()));
        Ok(Compiled { path, fresh: true })
    }

    /// Held until it is dropped; the system drops it when the process dies.
    fn lock(&self, key: &str, tell: &mut dyn FnMut(Progress)) -> Result<File> {
        let path = self.root.join(format!("{key}.lock"));
        let file = File::create(&path).map_err(at(&path, "making the lock"))?;
        if file.try_lock().is_err() {
            tell(Progress::Waiting);
            file.lock().map_err(at(&path, "waiting for the lock"))?;
        }
        Ok(file)
    }

    fn remove_other_builds(&self, digest: &[u8; 32], kept: &str, units: ComputeUnits) {
        let begins = format!("{}-", Self::key(digest, "", units).split('-').next().unwrap_or_default());
        let ends = format!("-{units}");
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name != kept && name.starts_with(&begins) && name.ends_with(&ends) {
                tracing::info!(name, "removing what was compiled on another build of the system");
                drop(fs::remove_dir_all(entry.path()));
            }
        }
    }
}

fn at(path: &Path, doing: &'static str) -> impl FnOnce(std::io::Error) -> CoreMlError {
    let path = path.to_owned();
    move |source| CoreMlError::Cache { path, doing, source }
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(at(path, "removing what was there")(error)),
        _ => Ok(()),
    }
}

/// Renames a folder, or copies it where it lies on another disk.
fn move_folder(from: &Path, to: &Path) -> Result<()> {
    if fs::rename(from, to).is_ok() {
        return Ok(());
    }
    copy_folder(from, to)?;
    drop(fs::remove_dir_all(from));
    Ok(())
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir(to).map_err(at(to, "making the folder"))?;
    for entry in fs::read_dir(from).map_err(at(from, "listing"))? {
        let entry = entry.map_err(at(from, "listing"))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().map_err(at(&source, "looking at it"))?.is_dir() {
            copy_folder(&source, &target)?;
        } else {
            fs::copy(&source, &target).map_err(at(&target, "copying"))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
