//! Packages whose digest was computed before and that nobody has written to since: their weights need not be read again to
//! know it.
//!
//! What a record tells a package by is what the system says of each of its files: which file it is, its length, and when it
//! was last written to and last changed at all, to the nanosecond. The last of these is set by the system alone, with every
//! write, rename or change of the other times; so a file that is replaced, cut short, written to or copied is another one. Where
//! the system does not say that, and for files that were changed in the last seconds (a clock has ticks, and two writes may
//! fall into one), nothing is recorded. What this cannot see is a disk that gives other bytes than were written to it; the
//! packed weights that are used instead have a checksum of their own.
//!
//! ```text
//! DIGEST-seen-STAMP     in the folder of packed weights: digest (32)  stamp (32)
//! ```

use std::fs::{self, Metadata};
use std::io::{self, Read, Write};
use std::path::PathBuf;

use anemone_package::bundle::hex;
use anemone_package::{Package, PackageError};
use sha2::{Digest, Sha256};

use crate::files;
use crate::packed::PackedFolder;

/// What the system says of the files of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp([u8; 32]);

/// The digest of a package as it is on disk.
pub(crate) struct Checked {
    pub(crate) digest: [u8; 32],
    /// What it is to be known by the next time, if it was read.
    new: Option<Stamp>,
}

impl Checked {
    /// Reads the package, unless it is known that nobody has written to it since it was read before.
    pub(crate) fn new(package: &Package, folder: Option<&PackedFolder>) -> Result<Self, PackageError> {
        let stamp = folder.and_then(|_| Stamp::of(package));
        let known = folder.zip(stamp.as_ref()).and_then(|(folder, stamp)| stamp.digest(folder));
        match known {
            Some(digest) => Ok(Self { digest, new: None }),
            None => Ok(Self { digest: package.digest()?, new: stamp }),
        }
    }

    /// The digest of a package that nobody has written to since it was read before.
    pub(crate) fn known(package: &Package, folder: &PackedFolder) -> Option<[u8; 32]> {
        Stamp::of(package)?.digest(folder)
    }

    pub(crate) fn keep(&self, package: &Package, folder: Option<&PackedFolder>) {
        if let (Some(stamp), Some(folder)) = (&self.new, folder) {
            stamp.keep(package, &self.digest, folder);
        }
    }
}

impl Stamp {
    /// Of a package whose files had been left alone for some seconds when it was opened.
    fn of(package: &Package) -> Option<Self> {
        Self::from(package.files().ok()?.into_iter().map(|(_, metadata)| metadata))
    }

    /// Whether a package is still as it was when this was its stamp.
    fn holds(&self, package: &Package) -> bool {
        let now = |files: Vec<(PathBuf, Metadata)>| {
            let metadata = files.iter().map(|(path, _)| fs::metadata(path)).collect::<io::Result<Vec<_>>>().ok()?;
            Self::from(metadata.into_iter())
        };
        package.files().ok().and_then(now).as_ref() == Some(self)
    }

    fn from(files: impl Iterator<Item = Metadata>) -> Option<Self> {
        let mut all = Sha256::new_with_prefix(b"anemone stamp 1\0");
        for metadata in files {
            numbers(&metadata)?.iter().for_each(|number| all.update(number.to_le_bytes()));
        }
        Some(Self(all.finalize().into()))
    }

    fn kind(&self) -> String {
        format!("seen-{}", &hex(&self.0)[..32])
    }

    /// The digest that the package of this stamp was found to have.
    fn digest(&self, folder: &PackedFolder) -> Option<[u8; 32]> {
        let mut record = Vec::new();
        let file = files::open(&folder.ending(&self.kind())?).ok()?;
        file.take(1 << 10).read_to_end(&mut record).ok()?;
        let (digest, stamp) = record.split_first_chunk()?;
        (stamp == self.0).then_some(*digest)
    }

    /// Records the digest of the package of this stamp, if it was left alone since. If that fails, it is computed again the
    /// next time.
    fn keep(&self, package: &Package, digest: &[u8; 32], folder: &PackedFolder) {
        let write = || -> io::Result<()> {
            let mut file = folder.begin()?;
            file.write_all(&[*digest, self.0].concat())?;
            file.persist(folder.file(digest, &self.kind())).map_err(|e| e.error)?;
            Ok(())
        };
        if self.holds(package)
            && let Err(error) = write()
        {
            tracing::info!("that {} is as it should be is not recorded: {error}", package.path().display());
        }
    }
}

/// What tells a file, and its state; none if it was changed just now.
#[cfg(unix)]
fn numbers(metadata: &Metadata) -> Option<[i128; 7]> {
    use std::os::unix::fs::MetadataExt;
    use std::time::{SystemTime, UNIX_EPOCH};

    /// Longer than a tick of any file system's clock.
    const SETTLED: i64 = 3;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok().and_then(|now| i64::try_from(now.as_secs()).ok())?;
    if metadata.ctime().max(metadata.mtime()) > now - SETTLED {
        return None;
    }
    let (modified, changed) = ((metadata.mtime(), metadata.mtime_nsec()), (metadata.ctime(), metadata.ctime_nsec()));
    let all = [i128::from(metadata.dev()), metadata.ino().into(), metadata.len().into()];
    let times = [modified.0, modified.1, changed.0, changed.1].map(i128::from);
    Some([all[0], all[1], all[2], times[0], times[1], times[2], times[3]])
}

#[cfg(not(unix))]
fn numbers(_metadata: &Metadata) -> Option<[i128; 7]> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use std::path::Path;
    use std::time::{Duration, Instant};

    use super::*;

    /// The tiny package, copied.
    fn copied(to: &Path) -> PathBuf {
        let from = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../goldens/tiny/model/model.mlpackage"));
        let data = "Data/com.apple.CoreML";
        fs::create_dir_all(to.join(data).join("weights")).unwrap();
        let files = ["Manifest.json", &format!("{data}/model.mlmodel"), &format!("{data}/weights/weight.bin")];
        for file in files {
            fs::copy(from.join(file), to.join(file)).unwrap();
        }
        to.join(files[2])
    }

    /// Opens a package as soon as it was left alone for long enough.
    fn settled(path: &Path) -> (Package, Stamp) {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let package = Package::open(path).unwrap();
            match Stamp::of(&package) {
                Some(stamp) => return (package, stamp),
                None => assert!(Instant::now() < end, "it was left alone"),
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    #[test]
    fn a_package_is_known_until_it_is_written_to() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("model.mlpackage");
        let weights = copied(&path);
        assert_eq!(Stamp::of(&Package::open(&path).unwrap()), None, "it was written just now");
        let (package, stamp) = settled(&path);
        let (kept, digest) = (PackedFolder::new(root.path().join("packed")), [7; 32]);
        assert_eq!(stamp.digest(&kept), None, "nothing is there yet");
        stamp.keep(&package, &digest, &kept);
        assert_eq!(stamp.digest(&kept), Some(digest));
        assert_eq!(Stamp::of(&Package::open(&path).unwrap()).as_ref(), Some(&stamp), "reading changes nothing");

        // The same bytes, with the times of before: that it was written to shows.
        let before = fs::metadata(&weights).unwrap().modified().unwrap();
        fs::write(&weights, fs::read(&weights).unwrap()).unwrap();
        fs::File::options().write(true).open(&weights).unwrap().set_modified(before).unwrap();
        let (changed, other) = settled(&path);
        assert_ne!(other, stamp);
        assert_eq!(other.digest(&kept), None);
        kept.clear().unwrap();
        stamp.keep(&package, &digest, &kept);
        assert_eq!(stamp.digest(&kept), None, "it was written to while it was looked at");

        // A damaged record is none, and records go with what was packed.
        other.keep(&changed, &digest, &kept);
        let record = kept.file(&digest, &other.kind());
        fs::write(&record, b"cut").unwrap();
        assert_eq!(other.digest(&kept), None);
        kept.remove(&hex(&digest)).unwrap();
        assert!(!record.exists());
    }
}
