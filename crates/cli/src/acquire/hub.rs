//! Hugging Face: its standard cache folder, shared with other tools, and downloads into it.
//!
//! The layout is that of `huggingface_hub` ("Understand caching" in its documentation):
//! `models--OWNER--NAME/{refs/REVISION, blobs/ETAG, snapshots/COMMIT/FILE -> ../../blobs/ETAG}`. A blob comes into being
//! by the renaming of its `.incomplete` file once that is verified, and a snapshot's link after its blob; so what has its
//! name is complete.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use anyhow::{Context, Result, bail};

use super::digest::Digest;
use super::http::{Client, Remote};
use super::listing::{Listing, Wanted};
use super::lock::Lock;
use super::{Acquired, Progress};

/// A repository of Hugging Face, or one file in it: `hf:OWNER/NAME`, `hf:OWNER/NAME/FILE.gguf`, each with `@REVISION`
/// if need be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Id {
    /// User or organisation.
    pub owner: String,
    /// Name of the repository.
    pub name: String,
    /// The one file that is wanted, instead of the whole checkpoint.
    pub file: Option<String>,
    /// Branch, tag or commit.
    pub revision: String,
}

impl Id {
    /// Reads an id; `Ok(None)` if `text` does not begin with `hf:` and so means something else.
    pub fn parse(text: &str) -> Result<Option<Id>> {
        let Some(rest) = text.strip_prefix("hf:") else { return Ok(None) };
        let (path, revision) = rest.split_once('@').unwrap_or((rest, "main"));
        let parts: Vec<&str> = path.split('/').collect();
        let (owner, name, file) = match parts[..] {
            [owner, name] => (owner, name, None),
            [owner, name, file] if file.ends_with(".gguf") => (owner, name, Some(file)),
            _ => bail!(
                "{text:?} is not a Hugging Face id: hf:OWNER/NAME or hf:OWNER/NAME/FILE.gguf, then @REVISION if any"
            ),
        };
        for part in [owner, name, revision].into_iter().chain(file) {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            if part.is_empty() || part.starts_with('.') || part.contains("--") || !part.chars().all(plain) {
                bail!("{part:?} in {text:?} is not a name that Hugging Face has");
            }
        }
        let [owner, name, revision] = [owner, name, revision].map(str::to_owned);
        Ok(Some(Id { owner, name, file: file.map(str::to_owned), revision }))
    }
}

impl std::fmt::Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "hf:{}/{}", self.owner, self.name)?;
        self.file.iter().try_for_each(|file| write!(f, "/{file}"))?;
        if self.revision == "main" { Ok(()) } else { write!(f, "@{}", self.revision) }
    }
}

/// How to reach Hugging Face and where its cache is.
pub struct Hub {
    cache: PathBuf,
    endpoint: String,
    token: Option<String>,
    offline: bool,
    pub(super) pause: Duration,
}

impl Hub {
    /// As the environment says, in the variables of Hugging Face's own tools: `HF_HOME`, `HF_HUB_CACHE`, `HF_ENDPOINT`,
    /// `HF_TOKEN`, `HF_TOKEN_PATH`, `HF_HUB_OFFLINE`.
    pub fn from_env(get: impl Fn(&str) -> Option<OsString>) -> Result<Hub> {
        let get = |name: &str| get(name).filter(|value| !value.is_empty());
        let text = |name: &str| get(name).and_then(|value| value.into_string().ok());
        let home = get("HF_HOME").map(PathBuf::from).or_else(|| {
            let user = get(if cfg!(windows) { "USERPROFILE" } else { "HOME" });
            let cache = get("XDG_CACHE_HOME").map(PathBuf::from).or_else(|| Some(PathBuf::from(user?).join(".cache")));
            Some(cache?.join("huggingface"))
        });
        let cache = get("HF_HUB_CACHE").or_else(|| get("HUGGINGFACE_HUB_CACHE")).map(PathBuf::from);
        let Some(cache) = cache.or_else(|| Some(home.as_ref()?.join("hub"))) else {
            bail!("there is no home folder for Hugging Face's cache: set HF_HOME");
        };
        let stored = || {
            let path = get("HF_TOKEN_PATH").map(PathBuf::from).or_else(|| Some(home.as_ref()?.join("token")))?;
            fs::read_to_string(path).ok()
        };
        let token = text("HF_TOKEN").or_else(stored).map(|token| token.trim().to_owned());
        let is_on = |value: &str| matches!(value.to_ascii_lowercase().as_str(), "1" | "true" | "yes" | "on");
        Ok(Hub {
            cache,
            endpoint: text("HF_ENDPOINT").unwrap_or("https://huggingface.co".into()).trim_end_matches('/').to_owned(),
            token: token.filter(|token| !token.is_empty()),
            offline: text("HF_HUB_OFFLINE").is_some_and(|value| is_on(&value)),
            pause: Duration::from_secs(1),
        })
    }

    fn repository(&self, id: &Id) -> PathBuf {
        self.cache.join(format!("models--{}--{}", id.owner, id.name))
    }

    /// What the cache has of `id`, if it is all there. Asks no one.
    pub fn cached(&self, id: &Id) -> Option<Acquired> {
        let repository = self.repository(id);
        let commit = match fs::read_to_string(repository.join("refs").join(&id.revision)) {
            Ok(commit) => commit.trim().to_owned(),
            Err(_) => id.revision.clone(),
        };
        let snapshot = repository.join("snapshots").join(check_commit(&commit).ok()?);
        let complete = match &id.file {
            Some(file) => snapshot.join(file).is_file(),
            None => is_complete(&snapshot),
        };
        let path = id.file.as_ref().map_or(snapshot.clone(), |file| snapshot.join(file));
        complete.then(|| Acquired {
            path,
            source: format!("{id}, from Hugging Face's cache"),
            digest: format!("git:{commit}"),
        })
    }

    /// Downloads what the cache lacks of `id`.
    pub fn download(&self, id: &Id, progress: &dyn Progress) -> Result<Acquired> {
        if self.offline {
            bail!("HF_HUB_OFFLINE is set, and {} is not complete in {}", id, self.cache.display());
        }
        let secure = self.endpoint.starts_with("https://");
        let client = Client::new(self.token.clone(), secure, self.pause);
        let (owner, name) = (&id.owner, &id.name);
        let url = format!("{}/api/models/{owner}/{name}/revision/{}?blobs=true", self.endpoint, id.revision);
        let listing =
            Listing::parse(&client.json(&url)?).with_context(|| format!("the answer of {url} is not as expected"))?;
        let commit = check_commit(&listing.commit)?;
        let wanted = listing.wanted(id.file.as_deref()).with_context(|| format!("{id} cannot be used"))?;

        let repository = self.repository(id);
        let snapshot = repository.join("snapshots").join(commit);
        for folder in [&repository.join("blobs"), &repository.join("refs"), &snapshot] {
            fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        }
        for file in &wanted {
            let url = format!("{}/{owner}/{name}/resolve/{commit}/{}", self.endpoint, file.name);
            self.fetch(id, &client, &url, file, progress)?;
            link(&repository, file.digest.hex(), &snapshot.join(&file.name))?;
        }
        // Last, since the cache is looked up by it. A commit needs no name.
        if id.revision != commit {
            replace(&repository.join("refs").join(&id.revision), commit)?;
        }
        let path = id.file.as_ref().map_or(snapshot.clone(), |file| snapshot.join(file));
        Ok(Acquired {
            path,
            source: format!("{id}, downloaded from {}", self.endpoint),
            digest: format!("git:{commit}"),
        })
    }

    /// Makes sure that the blob of one file is in the cache.
    fn fetch(&self, id: &Id, client: &Client, url: &str, file: &Wanted, progress: &dyn Progress) -> Result<()> {
        let etag = file.digest.hex();
        let blob = self.repository(id).join("blobs").join(etag);
        let locks = self.cache.join(".locks").join(format!("models--{}--{}", id.owner, id.name));
        let _lock = Lock::take(&locks.join(format!("{etag}.lock")), progress)?;
        if fs::metadata(&blob).is_ok_and(|meta| meta.len() == file.size) {
            return Ok(());
        }
        let partial = blob.with_file_name(format!("{etag}.incomplete"));
        let remote = Remote { url, name: &file.name, size: file.size, digest: &file.digest };
        client.download(&remote, &partial, progress)?;
        fs::rename(&partial, &blob).with_context(|| format!("cannot put {} in place", blob.display()))
    }
}

/// Whether a snapshot has all that a conversion reads. Links whose blob is missing count as missing.
fn is_complete(snapshot: &Path) -> bool {
    let has = |name: &str| snapshot.join(name).is_file();
    let tokenizer = has("tokenizer.json") || has("tokenizer.model");
    if !has("config.json") || !tokenizer {
        return false;
    }
    let Ok(index) = fs::read(snapshot.join("model.safetensors.index.json")) else { return has("model.safetensors") };
    let index: serde_json::Value = serde_json::from_slice(&index).unwrap_or_default();
    let shards = index["weight_map"].as_object().into_iter().flat_map(|map| map.values());
    let mut shards = shards.map(|shard| shard.as_str().is_some_and(has)).peekable();
    shards.peek().is_some() && shards.all(|there| there)
}

/// A commit names a folder, so it must be one.
fn check_commit(commit: &str) -> Result<&str> {
    match Digest::parse(commit) {
        Ok(Digest::GitBlob(_)) => Ok(commit),
        _ => bail!("{commit:?} is not a git commit"),
    }
}

/// Links a snapshot's file to its blob: by a relative symlink as other tools do, or where there are none a hard link or
/// a copy.
fn link(repository: &Path, etag: &str, at: &Path) -> Result<()> {
    let blob = repository.join("blobs").join(etag);
    let relative = Path::new("../../blobs").join(etag);
    if fs::canonicalize(at).is_ok_and(|found| fs::canonicalize(&blob).is_ok_and(|wanted| wanted == found)) {
        return Ok(());
    }
    match fs::remove_file(at) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let made = symlink(&relative, at).or_else(|_| fs::hard_link(&blob, at)).or_else(|_| {
        let partial = at.with_extension("incomplete");
        fs::copy(&blob, &partial).and_then(|_| fs::rename(&partial, at))
    });
    match made {
        // Another process made the same link meanwhile.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.with_context(|| format!("cannot link {} to {}", at.display(), blob.display())),
    }
}

#[cfg(unix)]
fn symlink(target: &Path, at: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, at)
}

#[cfg(windows)]
fn symlink(target: &Path, at: &Path) -> io::Result<()> {
    std::os::windows::fs::symlink_file(target, at)
}

/// Writes a small file so that readers see the old text or the new.
fn replace(path: &Path, text: &str) -> Result<()> {
    let write = || -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
        file.write_all(text.as_bytes())?;
        file.persist(path)?;
        Ok(())
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests;
