//! Conversations kept in folders: a log that says what was said, snapshots of the cache, a lock.
//!
//! ```text
//! ROOT/NAME/
//! ├── log            the conversation; see `docs/sessions.md`
//! ├── snapshots/     caches, which can be computed anew
//! ├── lock           held by the process that has the session open; the system drops it when the process dies
//! └── owner          that process's number, for messages
//! ```

mod error;
mod folder;
mod notice;
mod saved;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use error::KeepError;
pub use notice::{Notice, Reopened};
pub use saved::SavedSession;

use crate::disk::{self, Disk};
use crate::{Error, LanguageModel, Result, Runner, Session, SnapshotLimits};
pub(crate) use folder::{Held, LOG, SNAPSHOTS};

/// How much is kept besides the logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepLimits {
    /// Snapshots of each session.
    pub snapshots: usize,
    /// Bytes of the snapshots of all sessions.
    pub bytes: u64,
    /// A snapshot is made after so many tokens that no snapshot holds, and when [`Session::checkpoint`] asks for one.
    pub every: usize,
}

impl Default for KeepLimits {
    /// Two snapshots of each session, 2 GiB of them all, one every 512 tokens.
    fn default() -> Self {
        Self { snapshots: 2, bytes: 2 << 30, every: 512 }
    }
}

/// A folder of conversations that outlive the process.
///
/// ```no_run
/// use anemone::{KeepLimits, Model, ModelOptions, Request, SessionStore};
///
/// let model = Model::open("smollm2".as_ref(), &ModelOptions::default())?;
/// let store = SessionStore::new("sessions", KeepLimits::default());
/// let (mut session, reopened) = store.open("travel", model.into())?;
/// reopened.notices.iter().for_each(|notice| eprintln!("{notice}"));
/// session.say("Where were we?", &Request::default(), &mut |_| {})?;
/// session.checkpoint()?;
/// # Ok::<(), anemone::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SessionStore {
    root: PathBuf,
    limits: KeepLimits,
    disk: Arc<dyn Disk>,
}

impl SessionStore {
    /// The sessions in a folder, which need not exist yet.
    pub fn new(root: impl Into<PathBuf>, limits: KeepLimits) -> Self {
        Self::on(disk::real(), root, limits)
    }

    pub(crate) fn on(disk: Arc<dyn Disk>, root: impl Into<PathBuf>, limits: KeepLimits) -> Self {
        Self { root: root.into(), limits, disk }
    }

    /// The folder of all sessions.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Opens the session `name`, or begins it. Every token that was shown is there again; the cache comes from the newest
    /// snapshot that can be used, and what that lacks is computed with the next turn.
    ///
    /// # Errors
    /// [`Error::Kept`]: another process has it open, the log can't be read or written, or it belongs to a model with
    /// another tokenizer.
    pub fn open<R: Runner>(&self, name: &str, model: Arc<LanguageModel<R>>) -> Result<(Session<R>, Reopened)> {
        let held = self.hold(name)?;
        Session::new(model)?.reopen(held)
    }

    /// A copy of the session `name`, which is not kept. The session itself is only read, also if another process has it
    /// open, and stays as it is whatever becomes of the copy.
    ///
    /// # Errors
    /// [`Error::Kept`]: there is none of that name, its log can't be read, or it belongs to a model with another tokenizer.
    pub fn copy<R: Runner>(&self, name: &str, model: Arc<LanguageModel<R>>) -> Result<(Session<R>, Reopened)> {
        let folder = self.existing(name)?;
        Session::new(model)?.copy_of(&folder, &Held::shelf(&folder, self.limits, &self.disk))
    }

    /// Keeps a conversation as the session `name`, which must not exist yet, and from now on all that becomes of it. If it
    /// was kept under another name, that session stays as it is.
    ///
    /// # Errors
    /// [`Error::Kept`] when there is such a session already, or it can't be written; then nothing has changed.
    pub fn keep<R: Runner>(&self, name: &str, session: &mut Session<R>) -> Result<()> {
        let folder = self.folder(name)?;
        if folder.join(LOG).exists() {
            return Err(Error::kept(&folder, KeepError::Exists));
        }
        let held = self.hold(name)?;
        session.keep_from_now(held)
    }

    /// As [`SessionStore::keep`], under the name with the first number behind it that nobody has yet; the name is shortened
    /// if it has to be. Gives the name.
    ///
    /// # Errors
    /// [`Error::Kept`] when it can't be written; then nothing has changed.
    pub fn keep_beside<R: Runner>(&self, name: &str, session: &mut Session<R>) -> Result<String> {
        for number in 2_u64.. {
            let beside = numbered(name, number);
            match self.keep(&beside, session) {
                Err(Error::Kept { source, .. }) if matches!(*source, KeepError::Exists | KeepError::Locked { .. }) => {}
                kept => return kept.map(|()| beside),
            }
        }
        unreachable!("numbers don't end")
    }

    /// What is kept, by name.
    ///
    /// # Errors
    /// [`Error::Kept`] when the folder can't be read. Sessions that can't are among those listed, with the reason.
    pub fn list(&self) -> Result<Vec<SavedSession>> {
        let failed = |source| Error::kept(&self.root, KeepError::Io { what: "read", source });
        let entries = match fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
            if check_name(&name).is_ok() && self.root.join(&name).join(LOG).is_file() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names.iter().map(|name| SavedSession::look(name, &self.root.join(name), false)).collect())
    }

    /// Reads a session without opening it.
    ///
    /// # Errors
    /// [`Error::Kept`] when there is none of that name.
    pub fn look(&self, name: &str) -> Result<SavedSession> {
        let folder = self.existing(name)?;
        Ok(SavedSession::look(name, &folder, true))
    }

    /// Removes a session for good.
    ///
    /// # Errors
    /// [`Error::Kept`] when there is none of that name, another process has it open, or it can't be removed.
    pub fn delete(&self, name: &str) -> Result<()> {
        let folder = self.existing(name)?;
        let held = self.hold(name)?;
        let failed = |source| Error::kept(&folder, KeepError::Io { what: "removed", source });
        // Renamed first, so that a kill half-way through leaves no half a session under its name.
        let doomed = self.root.join(format!("{REMOVED}{name}-{}", std::process::id()));
        fs::rename(&folder, &doomed).map_err(failed)?;
        drop(held);
        self.sweep();
        fs::remove_dir_all(&doomed).or_else(gone_already).map_err(failed)
    }

    /// Removes what a process that was killed while it removed a session has left.
    fn sweep(&self) {
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(REMOVED) {
                // What another process is removing just now goes in any case.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    fn existing(&self, name: &str) -> Result<PathBuf> {
        let folder = self.folder(name)?;
        if folder.join(LOG).is_file() { Ok(folder) } else { Err(Error::kept(&folder, KeepError::Missing)) }
    }

    fn folder(&self, name: &str) -> Result<PathBuf> {
        check_name(name).map_err(|problem| Error::kept(&self.root, KeepError::Name { name: name.into(), problem }))?;
        Ok(self.root.join(name))
    }

    fn hold(&self, name: &str) -> Result<Held> {
        let folder = self.folder(name)?;
        Held::take(&folder, &self.root, self.limits, &self.disk).map_err(|source| Error::kept(&folder, source))
    }
}

/// How the names of folders begin that are being removed. No session's name does.
const REMOVED: &str = ".removed-";

fn gone_already(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// The most bytes of a name.
const NAME_LIMIT: usize = 100;

/// A name with a number behind it, of which as much is left as fits.
fn numbered(name: &str, number: u64) -> String {
    let number = format!("-{number}");
    let most = NAME_LIMIT - number.len();
    let length = name.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|&end| end <= most).last();
    format!("{}{number}", &name[..length.unwrap_or(0)])
}

/// A name is one plain path component.
fn check_name(name: &str) -> Result<(), &'static str> {
    if name.is_empty() || name.len() > NAME_LIMIT {
        return Err("names have 1 to 100 bytes");
    }
    if name.starts_with(['.', '-']) || name.ends_with(['.', ' ']) {
        return Err("names begin with no dot or hyphen and end with no dot or space");
    }
    if name.chars().any(|c| c.is_control() || "/\\:*?\"<>|".contains(c)) {
        return Err("names have no path separators, control characters or any of :*?\"<>|");
    }
    Ok(())
}

impl KeepLimits {
    /// The limits of one session's snapshots.
    pub(crate) fn each(self) -> SnapshotLimits {
        SnapshotLimits { count: self.snapshots, bytes: self.bytes }
    }
}

#[cfg(test)]
mod tests;
