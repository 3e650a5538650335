//! Where Anemone keeps things between runs: one folder in the user's cache, and one for what can't be made again.
//!
//! ```text
//! $ANEMONE_HOME            or the platform's cache folder + /anemone
//! ├── checkpoints/         downloaded source models, one file each
//! ├── models/NAME/         converted models, ready to chat with
//! ├── prefixes/            caches of long system messages
//! ├── packed/              weights as they are packed for this processor, so that the next start is quick
//! └── tmp/                 work in progress; whatever is left here by a killed run is never mistaken for complete
//!
//! $ANEMONE_HOME            or the platform's folder of user data + /anemone
//! └── sessions/NAME/       conversations
//! ```

mod packed;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fs, io};

use anemone_convert::ConvertError;
use anyhow::{Context, Error, Result, bail};

use crate::causes;
pub use packed::package_digests;

/// The folder that holds cached checkpoints, converted models and work in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
    /// The folder of what can't be made again.
    data: PathBuf,
}

/// What a cached thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A converted model: a folder under `models/`.
    Model,
    /// A downloaded checkpoint: a file under `checkpoints/`.
    Checkpoint,
}

/// One cached thing, as `anemone models` lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cached {
    /// The name to give to `--model` or to remove.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Where it is.
    pub path: PathBuf,
    /// Bytes on disk, all files together.
    pub bytes: u64,
}

/// The name of the folder of packed weights, in the home and among what can be removed.
pub const PACKED: &str = "packed";

/// What was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    /// Its name.
    pub name: String,
    /// Bytes of the thing itself.
    pub bytes: u64,
    /// Bytes of what its weights were packed to.
    pub packed: u64,
}

impl Home {
    /// The home folder of this user; it need not exist yet.
    pub fn locate() -> Result<Home> {
        Home::from_env(|name| std::env::var_os(name))
    }

    /// As [`Home::locate`], with environment variables from `get`.
    pub fn from_env(get: impl Fn(&str) -> Option<OsString>) -> Result<Home> {
        let get = |name: &str| get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(root) = get("ANEMONE_HOME") {
            return Ok(Home { data: root.clone(), root });
        }
        let cache = if cfg!(windows) {
            get("LOCALAPPDATA")
        } else if cfg!(target_vendor = "apple") {
            get("HOME").map(|home| home.join("Library/Caches"))
        } else {
            // The XDG base directory specification has relative paths ignored.
            get("XDG_CACHE_HOME")
                .filter(|path| path.is_absolute())
                .or_else(|| get("HOME").map(|home| home.join(".cache")))
        };
        let data = if cfg!(windows) {
            get("LOCALAPPDATA")
        } else if cfg!(target_vendor = "apple") {
            get("HOME").map(|home| home.join("Library/Application Support"))
        } else {
            get("XDG_DATA_HOME")
                .filter(|path| path.is_absolute())
                .or_else(|| get("HOME").map(|home| home.join(".local/share")))
        };
        match cache {
            Some(cache) => {
                let data = data.unwrap_or_else(|| cache.clone()).join("anemone");
                Ok(Home { root: cache.join("anemone"), data })
            }
            None => {
                bail!("this user has no cache folder (HOME is not set): set ANEMONE_HOME to a folder to keep models in")
            }
        }
    }

    /// A home at this very folder.
    pub fn at(root: impl Into<PathBuf>) -> Home {
        let root = root.into();
        Home { data: root.clone(), root }
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where downloaded checkpoints are.
    pub fn checkpoints(&self) -> PathBuf {
        self.root.join("checkpoints")
    }

    /// Where converted models are.
    pub fn models(&self) -> PathBuf {
        self.root.join("models")
    }

    /// Where the caches of long system messages are.
    pub fn prefixes(&self) -> PathBuf {
        self.root.join("prefixes")
    }

    /// Where conversations are.
    pub fn sessions(&self) -> PathBuf {
        self.data.join("sessions")
    }

    /// Where work in progress is. On the same file system as the rest, so that a rename out of it is atomic.
    pub fn tmp(&self) -> PathBuf {
        self.root.join("tmp")
    }

    /// The path of [`Home::packed`].
    pub fn packed_path(&self) -> PathBuf {
        self.root.join(PACKED)
    }

    /// The folder of the converted model `name`; refuses names that would lead elsewhere.
    pub fn model(&self, name: &str) -> Result<PathBuf> {
        check_name(name)?;
        Ok(self.models().join(name))
    }

    /// Everything cached, models first, by name.
    pub fn list(&self) -> Result<Vec<Cached>> {
        let mut found = entries(&self.models(), Kind::Model)?;
        found.extend(entries(&self.checkpoints(), Kind::Checkpoint)?);
        Ok(found)
    }

    /// Removes one cached thing by name and says what it was. A model goes before a checkpoint of the same name, and with it
    /// what its weights were packed to; [`PACKED`] is all that is packed.
    pub fn remove(&self, name: &str) -> Result<Removed> {
        check_name(name)?;
        let listed = self.list()?;
        let Some(cached) = listed.iter().find(|cached| cached.name == name) else {
            if name == PACKED {
                let path = self.packed_path();
                let packed = self.packed().clear().with_context(|| format!("cannot empty {}", path.display()))?;
                return Ok(Removed { name: name.to_owned(), bytes: 0, packed });
            }
            let names: Vec<&str> = listed.iter().map(|cached| cached.name.as_str()).collect();
            bail!("nothing called {name} is cached in {}; cached: {}", self.root.display(), or_nothing(&names));
        };
        let digests = package_digests(&cached.path);
        // Renamed first, so that a kill half-way through leaves no half a model under its name.
        let place =
            || format!("cannot remove {}: it is first moved to {}", cached.path.display(), self.tmp().display());
        fs::create_dir_all(self.tmp()).with_context(place)?;
        let doomed = tempfile::Builder::new().prefix("removed-").tempdir_in(self.tmp()).with_context(place)?;
        fs::rename(&cached.path, doomed.path().join("it"))
            .and_then(|()| doomed.close())
            .with_context(|| format!("cannot remove {}", cached.path.display()))?;
        let packed = self.forget_packed(&digests)?;
        Ok(Removed { name: cached.name.clone(), bytes: cached.bytes, packed })
    }
}

impl Home {
    /// An error with the remedy, if it is that the system refuses what this home needs.
    #[must_use]
    pub fn advise(&self, error: Error) -> Error {
        use io::ErrorKind::{NotADirectory, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        let refused = |e: &io::Error| {
            matches!(e.kind(), NotADirectory | PermissionDenied | QuotaExceeded | ReadOnlyFilesystem | StorageFull)
        };
        let system = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
        let full = matches!(error.downcast_ref(), Some(ConvertError::DiskFull { .. }));
        let ours = causes::told(&error).contains(&self.root.display().to_string());
        if !ours || !full && !system.is_some_and(refused) {
            return error;
        }
        error.context(format!(
            "models cannot be kept in {}; name another folder with ANEMONE_HOME, or make this one writable and free \
             room in it (`anemone models` lists what is there)",
            self.root.display()
        ))
    }
}

fn or_nothing(names: &[&str]) -> String {
    if names.is_empty() { "nothing".into() } else { names.join(", ") }
}

/// A name is one plain path component.
fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\', ':', '\0']) {
        bail!("{name:?} is not the name of a cached model: names have no path separators and do not begin with a dot");
    }
    Ok(())
}

fn entries(folder: &Path, kind: Kind) -> Result<Vec<Cached>> {
    let listing = match fs::read_dir(folder) {
        Ok(listing) => listing,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("cannot list {}", folder.display())),
    };
    let mut found = Vec::new();
    for entry in listing {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_folder = entry.path().is_dir();
        if check_name(&name).is_ok() && is_folder == (kind == Kind::Model) {
            found.push(Cached { name, kind, bytes: bytes_under(&entry.path()), path: entry.path() });
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// Bytes of all files under a path; symlinks count as themselves, what cannot be read as nothing.
#[must_use]
pub fn bytes_under(path: &Path) -> u64 {
    let Ok(meta) = fs::symlink_metadata(path) else { return 0 };
    if !meta.is_dir() {
        return meta.len();
    }
    fs::read_dir(path).map(|listing| listing.flatten().map(|entry| bytes_under(&entry.path())).sum()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env<'a>(pairs: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<OsString> + 'a {
        |name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
    }

    #[test]
    fn anemone_home_wins_over_the_platforms_folder() {
        let home = Home::from_env(env(&[("ANEMONE_HOME", "/a"), ("HOME", "/h"), ("XDG_CACHE_HOME", "/x")])).unwrap();
        assert_eq!(home.root(), Path::new("/a"));
    }

    #[cfg(all(unix, not(target_vendor = "apple")))]
    #[test]
    fn xdg_cache_home_then_dot_cache() {
        let root = |pairs: &[(&str, &str)]| Home::from_env(env(pairs)).unwrap().root().to_path_buf();
        assert_eq!(root(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/x")]), Path::new("/x/anemone"));
        assert_eq!(root(&[("HOME", "/h"), ("XDG_CACHE_HOME", "relative")]), Path::new("/h/.cache/anemone"));
        assert_eq!(root(&[("HOME", "/h"), ("ANEMONE_HOME", "")]), Path::new("/h/.cache/anemone"));
    }

    #[cfg(all(unix, not(target_vendor = "apple")))]
    #[test]
    fn conversations_are_no_cache() {
        let sessions = |pairs: &[(&str, &str)]| Home::from_env(env(pairs)).unwrap().sessions();
        assert_eq!(sessions(&[("HOME", "/h")]), Path::new("/h/.local/share/anemone/sessions"));
        assert_eq!(sessions(&[("HOME", "/h"), ("XDG_DATA_HOME", "/d")]), Path::new("/d/anemone/sessions"));
        assert_eq!(sessions(&[("HOME", "/h"), ("ANEMONE_HOME", "/a")]), Path::new("/a/sessions"));
    }

    #[test]
    fn no_home_at_all_says_what_to_set() {
        let error = Home::from_env(|_| None).unwrap_err();
        assert!(error.to_string().contains("ANEMONE_HOME"), "{error}");
    }

    #[test]
    fn what_the_system_refuses_has_its_remedy() {
        let home = Home::at("/var/lib/models");
        let io =
            |kind: io::ErrorKind, path: &str| Error::new(io::Error::from(kind)).context(format!("cannot open {path}"));
        let advised = |error| causes::told(&home.advise(error)).contains("ANEMONE_HOME");
        assert!(advised(io(io::ErrorKind::PermissionDenied, "/var/lib/models/tmp/x.lock")));
        assert!(!advised(io(io::ErrorKind::PermissionDenied, "/srv/ada/model.gguf")));
        assert!(!advised(io(io::ErrorKind::NotFound, "/var/lib/models/tmp/x.lock")));
        assert!(advised(ConvertError::DiskFull { path: home.models(), needed: 2, free: 1 }.into()));
    }

    #[test]
    fn lists_and_removes_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        assert_eq!(home.list().unwrap(), []);
        fs::create_dir_all(home.models().join("tiny/model.mlpackage")).unwrap();
        fs::write(home.models().join("tiny/model.mlpackage/weights"), [0; 1000]).unwrap();
        fs::write(home.models().join("tiny/tokenizer.json"), [0; 24]).unwrap();
        fs::create_dir_all(home.models().join(".half-made")).unwrap();
        fs::create_dir_all(home.checkpoints()).unwrap();
        fs::write(home.checkpoints().join("tiny.gguf"), [0; 7]).unwrap();
        let listed: Vec<_> = home.list().unwrap().into_iter().map(|c| (c.name, c.kind, c.bytes)).collect();
        assert_eq!(listed, [("tiny".into(), Kind::Model, 1024), ("tiny.gguf".into(), Kind::Checkpoint, 7)]);

        let error = home.remove("other").unwrap_err().to_string();
        assert!(error.contains("tiny, tiny.gguf"), "{error}");
        assert_eq!(home.remove("tiny").unwrap().bytes, 1024);
        assert_eq!(home.list().unwrap().len(), 1);
        assert_eq!(fs::read_dir(home.tmp()).unwrap().count(), 0);
    }

    #[test]
    fn names_cannot_lead_elsewhere() {
        let home = Home::at("/nowhere");
        for name in ["", "..", ".hidden", "a/b", "a\\b", "C:x", "/etc"] {
            assert!(home.model(name).is_err(), "{name:?}");
            assert!(home.remove(name).is_err(), "{name:?}");
        }
    }
}
