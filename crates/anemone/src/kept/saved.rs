//! A session as it lies on disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{LOG, SNAPSHOTS};
use crate::session::Reading;
use crate::snapshot::store;
use crate::{Error, Message};

/// What is known of a kept session without opening it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SavedSession {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// The conversation. Where [`SessionStore::look`](crate::SessionStore::look) can read the model's tokenizer, an answer
    /// that was not finished is the last of them.
    pub messages: Vec<Message>,
    /// Its tokens.
    pub tokens: Vec<u32>,
    /// How many of these, at their end, are of an answer that was not finished; it becomes a message when the session is
    /// opened.
    pub unfinished: usize,
    /// Whether that answer is among the messages.
    pub unfinished_is_read: bool,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// How many snapshots there are.
    pub snapshots: usize,
    /// Bytes of the snapshots.
    pub snapshot_bytes: u64,
    /// When something was last said in it.
    pub changed: Option<SystemTime>,
    /// Why it can't be read, or only in part.
    pub problem: Option<String>,
}

impl SavedSession {
    /// Reads a session; `wholly` with the text of an answer that was not finished, which takes the time of reading a
    /// tokenizer.
    pub(super) fn look(name: &str, folder: &Path, wholly: bool) -> Self {
        let log = folder.join(LOG);
        let metadata = fs::metadata(&log).ok();
        let snapshots = store::items(&folder.join(SNAPSHOTS));
        let mut saved = Self {
            name: name.to_owned(),
            folder: folder.to_owned(),
            messages: Vec::new(),
            tokens: Vec::new(),
            unfinished: 0,
            unfinished_is_read: false,
            log_bytes: metadata.as_ref().map_or(0, fs::Metadata::len),
            snapshots: snapshots.len(),
            snapshot_bytes: snapshots.iter().map(|item| item.bytes).sum(),
            changed: metadata.and_then(|metadata| metadata.modified().ok()),
            problem: None,
        };
        match Reading::of(&log) {
            Ok(reading) => {
                saved.messages = reading.messages().cloned().collect();
                saved.unfinished = reading.unfinished().len();
                if wholly
                    && saved.unfinished > 0
                    && let Some(text) = reading.unfinished_text()
                {
                    saved.messages.push(Message::assistant(text));
                    saved.unfinished_is_read = true;
                }
                saved.problem = match (reading.damaged, reading.another) {
                    (true, _) => Some(format!("is damaged: this is what is left, {} messages are lost", reading.lost)),
                    (false, true) => Some(format!("has another one behind its end, {} bytes", reading.rest)),
                    (false, false) => (!reading.is_torn)
                        .then(|| format!("is damaged: its last {} bytes are no records", reading.rest)),
                }
                .map(|problem| format!("{}: the log {problem}", log.display()));
                saved.tokens = reading.content.tokens;
            }
            Err(error) => saved.problem = Some(Error::kept(&log, error).to_string()),
        }
        saved
    }
}
