//! A session that is kept: what happens to it goes into its log before it is shown.

use std::path::Path;
use std::sync::Arc;

use anemone_package::bundle::hex;

use super::Session;
use super::earlier::Draft;
use super::log::{BUILD, Begin, Content, Log, Open, Reading, from_nanoseconds, nanoseconds, set_aside};
use super::prompt::{Entry, Generated};
use crate::kept::{Held, KeepError, LOG, Notice, Reopened};
use crate::snapshot::{Shelf, SnapshotInfo, store};
use crate::{Detokenizer, Error, LanguageModel, Message, Result, Runner, Tokenizer};

/// Where a session is kept.
#[derive(Debug)]
pub(super) struct Kept {
    held: Held,
    /// How many tokens the latest snapshot holds.
    snapshot_at: usize,
    /// What could not be written and will be tried again.
    trouble: Option<String>,
}

impl<R: Runner> Session<R> {
    /// The folder that the session is kept in, if it is.
    pub fn folder(&self) -> Option<&Path> {
        self.kept.as_ref().map(|kept| kept.held.folder.as_path())
    }

    /// Why the log is behind the conversation, if it is. What it lacks is written with the next change; what was shown
    /// to the caller is in it in any case.
    pub fn trouble(&self) -> Option<&str> {
        self.kept.as_ref()?.trouble.as_deref()
    }

    /// Makes a snapshot of a kept session, so that opening it again computes nothing. None if the session is not kept or
    /// there is such a snapshot already.
    ///
    /// # Errors
    /// [`Error::Snapshot`] when it can't be written. The log is not affected.
    pub fn checkpoint(&mut self) -> Result<Option<SnapshotInfo>> {
        self.commit("checkpoint");
        let position = self.position();
        let Some(kept) = self.kept.as_mut().filter(|kept| kept.snapshot_at != position && position > 0) else {
            return Ok(None);
        };
        let written = kept.held.shelf.put(&self.model.runner, self.transcript.state(), self.transcript.read())?;
        kept.snapshot_at = position;
        kept.held.trim(&written.path);
        Ok(Some(written))
    }

    /// Makes this, a new session, the one that is kept in a folder.
    pub(crate) fn reopen(mut self, held: Held) -> Result<(Self, Reopened)> {
        let path = held.folder.join(LOG);
        let fail = |source| Error::kept(&path, source);
        if !path.exists() {
            self.keep_from_now(held)?;
            return Ok((self, Reopened { is_new: true, ..Reopened::default() }));
        }
        let reading = match self.read_log(&path) {
            Err(Error::Kept { source, .. }) if matches!(*source, KeepError::Empty | KeepError::NothingLeft) => {
                let notice = match *source {
                    KeepError::Empty => Notice::Empty,
                    _ => Notice::NothingLeft { copy: set_aside(&path).map_err(fail)? },
                };
                self.keep_from_now(held)?;
                return Ok((self, Reopened { is_new: true, notices: vec![notice], ..Reopened::default() }));
            }
            reading => reading?,
        };
        let mut notices = match reading.damaged || !reading.is_torn {
            true => reading.damage(&set_aside(&path).map_err(fail)?),
            false if reading.rest > 0 => vec![Notice::Cut { bytes: reading.rest }],
            false => Vec::new(),
        };
        if reading.damaged {
            notices.extend(self.recall(reading)?);
            let log = Log::renew(&held.disk, &path, &begin(&self.model), self.content()).map_err(fail)?;
            self.transcript.set_log(Some(log));
        } else {
            let log = Log::reopen(&held.disk, &path, &reading).map_err(fail)?;
            notices.extend(self.recall(reading)?);
            self.transcript.set_log(Some(log));
        }
        held.shelf.sweep();
        let reopened = self.reopened(&held.shelf, notices);
        self.kept = Some(Kept { held, snapshot_at: reopened.position, trouble: None });
        self.commit("reopened");
        Ok((self, reopened))
    }

    /// What a log is to tell.
    fn content(&self) -> Content {
        let (entries, earlier) = (self.entries.clone(), Arc::clone(&self.earlier));
        Content { entries, earlier, tokens: self.transcript.tokens().to_vec(), began: nanoseconds(self.began) }
    }

    /// Makes this, a new session, a copy of the one that is kept in a folder, which is not changed.
    pub(crate) fn copy_of(mut self, folder: &Path, shelf: &Shelf) -> Result<(Self, Reopened)> {
        let path = folder.join(LOG);
        let reading = self.read_log(&path)?;
        let mut notices = reading.damage(&path);
        notices.extend(self.recall(reading)?);
        let reopened = self.reopened(shelf, notices);
        Ok((self, reopened))
    }

    /// Reads a log, which must be of this session's tokenizer.
    fn read_log(&self, path: &Path) -> Result<Reading> {
        let fail = |source| Error::kept(path, source);
        let reading = Reading::of(path).map_err(fail)?;
        let (here, there) = (begin(&self.model), &reading.begin);
        match there {
            Some(there) if there.tokenizer != here.tokenizer || there.vocabulary > here.vocabulary => {
                Err(fail(KeepError::Tokenizer { expected: here.tokenizer, found: there.tokenizer.clone() }))
            }
            Some(_) => Ok(reading),
            None if self.has_said(&reading)? => Ok(reading),
            None => Ok(reading.without_tokens()),
        }
    }

    /// Whether the tokens of a log that does not say whose they are give the texts of its answers.
    fn has_said(&self, reading: &Reading) -> Result<bool> {
        let vocabulary = self.model.runner.vocabulary();
        if reading.content.tokens.iter().any(|&id| id as usize >= vocabulary) {
            return Ok(false);
        }
        let mut answers = reading.content.entries.iter().filter_map(|entry| entry.generated.as_ref()).peekable();
        if answers.peek().is_none() {
            return Ok(false);
        }
        for answer in answers {
            let is_token = |&id: &u32| (id as usize) < vocabulary;
            if !answer.tokens.iter().all(is_token) || text_of(&self.model.tokenizer, &answer.tokens)?.0 != answer.text {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes the cache from a snapshot, if there is one, and tells what was opened.
    fn reopened(&mut self, shelf: &Shelf, mut notices: Vec<Notice>) -> Reopened {
        let (position, snapshot) = self.take_snapshot(shelf, &mut notices);
        let (messages, tokens) = (self.entries.len(), self.transcript.tokens().len());
        // The last token of an answer is never read before the next message.
        if tokens > position + 1 {
            notices.push(Notice::Replay { tokens: tokens - position });
        }
        Reopened { is_new: false, messages, tokens, position, snapshot, notices }
    }

    /// Makes the conversation of `other` this one's. Where this one is kept it stays kept, with its policy for overflows;
    /// what it was before is in its log alone.
    ///
    /// # Errors
    /// [`Error::Conversation`] when `other` is with another model.
    pub fn replace_with(&mut self, mut other: Self) -> Result<()> {
        if !Arc::ptr_eq(&self.model, &other.model) {
            let problem = "that conversation is with another model".into();
            return Err(Error::Conversation { operation: "load", problem });
        }
        other.transcript.set_log(None);
        other.transcript.succeed(&mut self.transcript);
        self.transcript = other.transcript;
        (self.entries, self.earlier) = (other.entries, other.earlier);
        (self.prompter, self.began) = (other.prompter, other.began);
        if let Some(kept) = &mut self.kept {
            kept.snapshot_at = 0;
        }
        self.commit("loaded");
        Ok(())
    }

    /// Makes the conversation what a log tells of it.
    fn recall(&mut self, reading: Reading) -> Result<Option<Notice>> {
        let unfinished = reading.unfinished().to_vec();
        let (mut content, notice) = match &reading.open {
            Some(_) if unfinished.is_empty() => {
                let text = reading.messages().last().map(|message| message.content.clone()).unwrap_or_default();
                (reading.before, Some(Notice::Unanswered { text }))
            }
            Some(_) => (reading.content, Some(Notice::Interrupted { tokens: unfinished.len() })),
            None => (reading.content, None),
        };
        match reading.open {
            Some((Open::Answer { before }, _)) if !unfinished.is_empty() => {
                let (text, ends) = text_of(&self.model.tokenizer, &unfinished)?;
                let message = Message::assistant(text.clone());
                let generated = Some(Arc::new(Generated { text, tokens: unfinished, ends, before }));
                content.entries.push(Entry { message, generated, end: content.tokens.len() });
            }
            Some((Open::Completion, _)) if !unfinished.is_empty() => {
                content.entries.clear();
                content.earlier = Arc::default();
            }
            _ => {}
        }
        (self.entries, self.earlier) = (content.entries, content.earlier);
        self.began = from_nanoseconds(content.began);
        // Of a transcript that has a hole nothing can be reused.
        if !reading.is_cut {
            self.transcript.append(&content.tokens);
        }
        Ok(notice)
    }

    /// Takes the cache from the snapshot that holds most of the transcript.
    fn take_snapshot(&mut self, shelf: &Shelf, notices: &mut Vec<Notice>) -> (usize, Option<std::path::PathBuf>) {
        let runner = &self.model.runner;
        let best = shelf.best(runner, self.transcript.tokens(), 1, false);
        let mut unusable = best.unusable;
        let mut taken = (0, None);
        for (snapshot, columns) in best.snapshots {
            let path = snapshot.info().path;
            match snapshot.load(runner, columns) {
                Ok(state) => {
                    store::touch(&path);
                    self.transcript.adopt(state, columns);
                    taken = (columns, Some(path));
                    break;
                }
                Err(error) => unusable.push(error),
            }
        }
        notices.extend(unusable.iter().map(|error| Notice::Unusable { problem: error.to_string() }));
        taken
    }

    /// Begins a log in a folder that has none, and tells it all that there is.
    pub(crate) fn keep_from_now(&mut self, held: Held) -> Result<()> {
        let path = held.log();
        let was_there = path.exists();
        let (tokens, began) = (self.transcript.tokens(), nanoseconds(self.began));
        let log = Log::create(&held.disk, &path, &begin(&self.model)).map_err(|source| Error::kept(&path, source));
        let told = log.and_then(|mut log| {
            log.change("begun", &self.entries, &self.earlier, tokens, began, None)?;
            log.sync().map(|()| log)
        });
        let log = match told {
            Ok(log) => log,
            Err(error) => {
                // A session that could not be kept must not be there.
                if !was_there {
                    held.abandon();
                }
                return Err(error);
            }
        };
        self.transcript.set_log(Some(log));
        self.kept = Some(Kept { held, snapshot_at: 0, trouble: None });
        Ok(())
    }

    /// Tells the log of a prompt, whose answer follows. Nothing may be shown that it was not told.
    pub(super) fn open_answer(&mut self, what: &str, draft: &Draft, prompt: &[u32], open: Open) -> Result<()> {
        let began = nanoseconds(self.began);
        match self.transcript.log() {
            Some(log) => log.change(what, &draft.entries, &draft.earlier, prompt, began, Some(open)),
            None => Ok(()),
        }
    }

    /// Tells the log what the conversation has become. If that fails, it is told with the next change.
    pub(super) fn commit(&mut self, what: &str) {
        let Some(kept) = &mut self.kept else { return };
        let told = self.transcript.commit(what, &self.entries, &self.earlier, nanoseconds(self.began));
        if let Err(error) = &told {
            tracing::warn!("{}: {error}", kept.held.log().display());
        }
        kept.trouble = told.err().map(|error| error.to_string());
    }

    /// As [`Session::commit`], after an answer; makes a snapshot when it is time for one.
    pub(super) fn commit_answer(&mut self, what: &str) {
        self.commit(what);
        let position = self.position();
        let due = |kept: &Kept| position.abs_diff(kept.snapshot_at) >= kept.held.limits.every.max(1);
        if self.kept.as_ref().is_some_and(due)
            && let Err(error) = self.checkpoint()
        {
            tracing::warn!("{error}");
        }
    }
}

/// The text of an answer's tokens, and where in it each ends.
pub(super) fn text_of(tokenizer: &Tokenizer, tokens: &[u32]) -> Result<(String, Vec<usize>)> {
    let mut detokenizer = Detokenizer::new(tokenizer, &[])?;
    let mut text = String::new();
    for &token in tokens {
        text.push_str(detokenizer.push(token)?);
    }
    text.push_str(detokenizer.finish()?);
    Ok((text, detokenizer.ends().to_vec()))
}

fn begin<R: Runner>(model: &LanguageModel<R>) -> Begin {
    Begin {
        build: BUILD.to_owned(),
        package: model.runner.cache_layout().map(|layout| hex(&layout.package)),
        tokenizer: hex(model.tokenizer.digest()),
        tokenizer_file: model.tokenizer.file().and_then(|file| Some(file.to_str()?.to_owned())),
        vocabulary: model.runner.vocabulary(),
    }
}
