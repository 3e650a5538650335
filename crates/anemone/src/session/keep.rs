//! A session's cache in files.

use std::path::Path;
use std::sync::Arc;

use super::transcript::common_prefix;
use super::{Entry, Session};
use crate::disk::{self, Disk};
use crate::snapshot::{PrefixStore, Snapshot, SnapshotError, SnapshotInfo};
use crate::{Error, Message, Rendering, Result, Runner};

impl<R: Runner> Session<R> {
    /// Keeps the cache, as far as it has been read, in a file, which is replaced only when all has been written.
    ///
    /// ```no_run
    /// # fn keep(session: &mut anemone::Session, prompt: &[u32]) -> anemone::Result<()> {
    /// let written = session.snapshot("talk.snapshot".as_ref())?;
    /// session.reset()?;
    /// assert_eq!(session.restore("talk.snapshot".as_ref())?.position, written.position);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Snapshot`] when it can't be written; then the file is as it was.
    pub fn snapshot(&self, path: &Path) -> Result<SnapshotInfo> {
        self.snapshot_on(&*disk::real(), path)
    }

    pub(crate) fn snapshot_on(&self, disk: &dyn Disk, path: &Path) -> Result<SnapshotInfo> {
        self.transcript.snapshot(&self.model.runner, disk, path)
    }

    /// Takes the cache from a snapshot. The transcript must begin with the snapshot's tokens, or be empty, in which case
    /// it becomes those tokens. Everything is checked before anything changes.
    ///
    /// # Errors
    /// [`Error::Snapshot`] with what does not match. Then the session is as it was before.
    pub fn restore(&mut self, path: &Path) -> Result<SnapshotInfo> {
        let snapshot = Snapshot::open(path)?;
        let info = snapshot.info();
        let transcript = self.transcript.tokens();
        let common = common_prefix(transcript, snapshot.tokens());
        if common < info.position && !transcript.is_empty() {
            return Err(Error::snapshot(path, SnapshotError::Tokens { common, position: info.position }));
        }
        let tokens = transcript.is_empty().then(|| snapshot.tokens().to_vec());
        let state = snapshot.load(&self.model.runner, info.position)?;
        if let Some(tokens) = tokens {
            self.transcript.append(&tokens);
        }
        self.transcript.adopt(state, info.position);
        Ok(info)
    }

    /// Has prompts begin with what `store` has of them, where that is more than the cache holds.
    pub fn set_prefixes(&mut self, store: Option<Arc<PrefixStore>>) {
        self.transcript.set_prefixes(store);
    }

    /// Reads what every conversation with this session's system message begins with, whatever the user says then, and
    /// keeps the cache of it in `store`. `progress` is told how many tokens are read, and of how many.
    ///
    /// # Errors
    /// [`Error::Conversation`] when the conversation has begun already or its beginning depends on what the user says;
    /// [`Error::ContextFull`], [`Error::Model`], [`Error::Snapshot`].
    pub fn keep_prefix(&mut self, store: &PrefixStore, progress: &mut dyn FnMut(usize, usize)) -> Result<SnapshotInfo> {
        let refused = |problem: &str| Error::Conversation { operation: "prefix", problem: problem.into() };
        if self.entries.iter().any(|entry| entry.message.role != "system") {
            return Err(refused("the conversation has begun already"));
        }
        let rendering = Rendering { add_generation_prompt: true, now: self.began, ..Rendering::default() };
        // Two messages that have nothing in common at their beginning: what the prompts have in common comes before them.
        let [one, other] = ["a", "§"].map(|text| {
            let mut entries = self.entries.clone();
            entries.push(Entry::new(Message::user(text)));
            let model = &self.model;
            self.prompter.prompt(&model.tokenizer, &model.template, &entries, &rendering)
        });
        let mut tokens = one?.tokens;
        tokens.truncate(common_prefix(&tokens, &other?.tokens));
        if tokens.is_empty() {
            return Err(refused("the prompt begins with what the user says"));
        }
        let (context, runner) = (self.context(), &self.model.runner);
        let total = tokens.len();
        if total >= context {
            return Err(Error::ContextFull { needed: total, context, reserved: 1 });
        }
        self.transcript.lay(runner, tokens);
        while self.transcript.position() < total {
            progress(self.transcript.position(), total);
            self.transcript.feed(runner, runner.chunk())?;
        }
        progress(total, total);
        store.put(runner, self.transcript.state(), self.transcript.read())
    }
}
