//! The folder of packed weights: what it holds, and what it may hold.
//!
//! ```text
//! DIGEST-ISA      what a package of that digest (its first half) was packed to for a processor
//! DIGEST-seen-…   that a package was found to have that digest; see `seen.rs`
//! .packing-…      one that is being written; its writer holds a lock on it
//! ```
//!
//! All of it can be made again, so it is bounded by removing: what was read the longest ago goes first.

use std::fs::{self, DirEntry, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anemone_package::bundle::hex;
use tempfile::NamedTempFile;

/// Where packed weights are kept ([`ModelOptions::packed`](crate::ModelOptions::packed)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedFolder(PathBuf);

/// How the names of files begin that are not complete yet.
const PARTIAL: &str = ".packing-";
/// Hexadecimal digits of a package's digest in the name of its file.
const DIGITS: usize = 32;
/// What nobody read for so long is removed when something is added.
const UNUSED: Duration = Duration::from_secs(30 * 24 * 3600);
/// Where there are no locks, what was not written to for so long is nobody's.
const ABANDONED: Duration = Duration::from_secs(3600);

impl PackedFolder {
    /// Files that are kept have so many bytes together, unless those of the model that was opened last have more.
    pub const MOST_BYTES: u64 = 4 << 30;

    /// The folder at `path`, which need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Bytes of all its files, of those that are not complete too.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.entries().filter_map(|entry| entry.metadata().ok()).filter(|m| m.is_file()).map(|m| m.len()).sum()
    }

    /// Removes what the package of this digest was packed to, for any processor; in hexadecimal digits, as the manifest of a
    /// converted model has it. Gives the bytes that are free now.
    ///
    /// # Errors
    /// Those of the system.
    pub fn remove(&self, sha256: &str) -> io::Result<u64> {
        let Some(stem) = sha256.get(..DIGITS) else { return Ok(0) };
        self.remove_all(|name| name.strip_prefix(stem).is_some_and(|rest| rest.starts_with('-')))
    }

    /// Removes all that is kept but what other processes are writing. Gives the bytes that are free now.
    ///
    /// # Errors
    /// Those of the system.
    pub fn clear(&self) -> io::Result<u64> {
        self.remove_abandoned();
        self.remove_all(|name| !name.starts_with(PARTIAL))
    }

    fn remove_all(&self, which: impl Fn(&str) -> bool) -> io::Result<u64> {
        let mut freed = 0;
        for entry in self.entries().filter(|entry| which(&entry.file_name().to_string_lossy())) {
            let bytes = entry.metadata().map_or(0, |m| m.len());
            match fs::remove_file(entry.path()) {
                Ok(()) => freed += bytes,
                // Somebody else may remove it at the same time.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(freed)
    }

    /// The file for a package of digest `owner` on a processor with this instruction set, or with something else to know of it.
    pub(crate) fn file(&self, owner: &[u8; 32], kind: &str) -> PathBuf {
        self.0.join(format!("{}-{kind}", &hex(owner)[..DIGITS]))
    }

    /// The first file whose name ends so.
    pub(crate) fn ending(&self, kind: &str) -> Option<PathBuf> {
        let ends = |entry: &DirEntry| entry.file_name().to_str().is_some_and(|name| name.ends_with(kind));
        self.entries().find(ends).map(|entry| entry.path())
    }

    /// Begins a file. Nobody else removes it while the process lives.
    pub(crate) fn begin(&self) -> io::Result<NamedTempFile> {
        fs::create_dir_all(&self.0)?;
        self.remove_abandoned();
        let file = tempfile::Builder::new().prefix(PARTIAL).tempfile_in(&self.0)?;
        // Where there are no locks, its time tells.
        let _unlocked = file.as_file().try_lock();
        Ok(file)
    }

    /// Removes what killed processes left half written.
    fn remove_abandoned(&self) {
        for entry in self.entries().filter(|e| e.file_name().to_string_lossy().starts_with(PARTIAL)) {
            if is_abandoned(&entry.path()) {
                let _gone = fs::remove_file(entry.path());
            }
        }
    }

    /// Removes what was not used for long, and what is beyond [`PackedFolder::MOST_BYTES`]; never the files `used`.
    pub(crate) fn bound(&self, used: &[&Path]) {
        self.bound_to(Self::MOST_BYTES, used);
    }

    fn bound_to(&self, most: u64, used: &[&Path]) {
        let mut all: Vec<(Duration, u64, PathBuf)> = Vec::new();
        let mut total = 0;
        for entry in self.entries() {
            let Ok(metadata) = entry.metadata() else { continue };
            if !metadata.is_file() || entry.file_name().to_string_lossy().starts_with(PARTIAL) {
                continue;
            }
            total += metadata.len();
            if !used.contains(&entry.path().as_path()) {
                all.push((age(&metadata), metadata.len(), entry.path()));
            }
        }
        all.sort_by_key(|(age, ..)| std::cmp::Reverse(*age));
        for (age, bytes, path) in all {
            if age <= UNUSED && total <= most {
                break;
            }
            match fs::remove_file(&path) {
                Ok(()) => {
                    tracing::debug!("{}: removed, for it is the one that was not used for longest", path.display())
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    tracing::info!("{}: it cannot be removed: {error}", path.display());
                    continue;
                }
            }
            total = total.saturating_sub(bytes);
        }
    }

    fn entries(&self) -> impl Iterator<Item = DirEntry> {
        fs::read_dir(&self.0).into_iter().flatten().flatten()
    }
}

/// Time since a file was last written, or read: readers set its time.
fn age(metadata: &fs::Metadata) -> Duration {
    metadata.modified().ok().and_then(|time| SystemTime::now().duration_since(time).ok()).unwrap_or_default()
}

/// Whether nobody writes to a file any longer: the system drops the lock of a process that dies, however it dies.
fn is_abandoned(path: &Path) -> bool {
    let Ok(file) = File::options().write(true).open(path) else { return false };
    match file.try_lock() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock) => false,
        Err(TryLockError::Error(_)) => file.metadata().is_ok_and(|m| age(&m) > ABANDONED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with files of 100 bytes, each read so many seconds ago.
    fn folder(files: &[(&str, u64)]) -> (tempfile::TempDir, PackedFolder) {
        let folder = tempfile::tempdir().unwrap();
        for (name, seconds) in files {
            fs::write(folder.path().join(name), [0; 100]).unwrap();
            let file = File::options().write(true).open(folder.path().join(name)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(*seconds)).unwrap();
        }
        let packed = PackedFolder::new(folder.path());
        (folder, packed)
    }

    fn names(folder: &PackedFolder) -> Vec<String> {
        let mut all: Vec<_> = folder.entries().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        all.sort();
        all
    }

    #[test]
    fn what_was_read_the_longest_ago_goes_first() {
        let (_root, packed) = folder(&[("a", 10), ("b", 400), ("c", 300), ("d", 20), (".packing-x", 900)]);
        assert_eq!(packed.bytes(), 500);
        packed.bound_to(400, &[]);
        assert_eq!(names(&packed).len(), 5, "there is room for all of them");
        packed.bound_to(250, &[]);
        assert_eq!(names(&packed), [".packing-x", "a", "d"]);
        packed.bound_to(100, &[&packed.0.join("d")]);
        assert_eq!(names(&packed), [".packing-x", "d"], "what is used stays, whatever its age");
        packed.bound_to(0, &[&packed.0.join("d")]);
        assert_eq!(names(&packed), [".packing-x", "d"]);
    }

    #[test]
    fn what_nobody_read_for_a_month_goes() {
        let (_root, packed) = folder(&[("a", 10), ("b", 31 * 24 * 3600)]);
        packed.bound(&[]);
        assert_eq!(names(&packed), ["a"]);
    }

    #[test]
    fn half_written_files_go_with_the_next_one_unless_they_are_being_written() {
        let (_root, packed) = folder(&[(".packing-killed", 3), ("whole", 3)]);
        let writing = packed.begin().unwrap();
        assert_eq!(names(&packed).len(), 2, "{:?}", names(&packed));
        let second = packed.begin().unwrap();
        assert_eq!(names(&packed).len(), 3, "{:?}", names(&packed));
        packed.clear().unwrap();
        assert_eq!(names(&packed).len(), 2, "those that are written: {:?}", names(&packed));
        drop((writing, second));
        assert!(names(&packed).is_empty());
    }

    #[test]
    fn the_files_of_one_package_are_removed_for_every_processor() {
        let (_root, packed) = folder(&[]);
        for (digest, isa) in [(1, "avx2"), (1, "plain"), (2, "avx2")] {
            fs::write(packed.file(&[digest; 32], isa), [0; 100]).unwrap();
        }
        assert_eq!(packed.remove(&hex(&[1; 32])).unwrap(), 200);
        assert_eq!(names(&packed), [format!("{}-avx2", &hex(&[2; 32])[..DIGITS])]);
        assert_eq!(PackedFolder::new("/nowhere/at/all").remove(&hex(&[1; 32])).unwrap(), 0);
        assert_eq!(packed.remove("").unwrap(), 0, "no digest");
        assert_eq!(PackedFolder::new("/nowhere/at/all").bytes(), 0);
    }
}
