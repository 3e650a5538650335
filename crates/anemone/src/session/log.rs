//! The log of a conversation: what it is, before it is shown.
//!
//! The log tells how messages and tokens changed, and every token that was generated. What it tells is read back by doing
//! the same again; a session that was killed has half a record at the end of its log at most.

mod change;
mod record;
mod salvage;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

pub(crate) use change::{Begin, Open, from_nanoseconds, nanoseconds};
pub(crate) use record::BUILD;

use anemone_package::bundle::hex;

use super::earlier::{Earlier, head};
use super::logged::text_of;
use super::prompt::Entry;
use crate::disk::Disk;
use crate::kept::{KeepError, Notice};
use crate::{Error, Result, Tokenizer};
use change::{Change, Gone, Said};
use record::{Kind, Records, Writer};
use salvage::{Salvage, Salvaged};

/// What a conversation is, as a log tells it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Content {
    pub(super) entries: Vec<Entry>,
    pub(super) earlier: Arc<Earlier>,
    pub(crate) tokens: Vec<u32>,
    /// In nanoseconds since 1970.
    pub(crate) began: u64,
}

/// A log that is written.
pub(crate) struct Log {
    path: PathBuf,
    writer: Writer,
    /// What it tells so far.
    content: Content,
    /// Whether it tells of an answer that was begun and not of its end.
    open: bool,
    /// Whether accepted tokens are those of that answer.
    recording: bool,
}

/// A log that was read.
#[derive(Debug)]
pub(crate) struct Reading {
    /// None if the record was damaged that says it.
    pub(crate) begin: Option<Begin>,
    pub(crate) content: Content,
    /// An answer that was not finished: what it is of, and where its tokens begin.
    pub(crate) open: Option<(Open, usize)>,
    /// What was before that answer was asked for.
    pub(crate) before: Content,
    /// Bytes after the last good record.
    pub(crate) rest: usize,
    /// Whether these are no more than a kill can have left.
    pub(crate) is_torn: bool,
    /// Whether they are, or end with, the log of another session.
    pub(crate) another: bool,
    /// Whether it was damaged: this is what the good records tell.
    pub(crate) damaged: bool,
    /// How many messages are lost then.
    pub(crate) lost: usize,
    /// Whether the tokens are not those of the messages, because some are lost.
    pub(crate) is_cut: bool,
    end: u64,
    count: u32,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("writer", &self.writer).finish_non_exhaustive()
    }
}

impl Log {
    /// Begins a log, of a conversation in which nothing was said.
    pub(crate) fn create(disk: &Arc<dyn Disk>, path: &Path, begin: &Begin) -> Result<Self, KeepError> {
        let writer = Writer::create(disk, path, &[(Kind::Begin, &begin.to_json())]).map_err(written)?;
        Ok(Self { path: path.to_owned(), writer, content: Content::default(), open: false, recording: false })
    }

    /// Puts a log in the place of a damaged one, with all that there is.
    pub(crate) fn renew(disk: &Arc<dyn Disk>, path: &Path, begin: &Begin, content: Content) -> Result<Self, KeepError> {
        let Content { entries, earlier, tokens, began } = &content;
        let change = Change::whole("recovered", entries, earlier, tokens, *began);
        let json = serde_json::to_vec(&change).map_err(|e| written(io::Error::other(e)))?;
        let records = [(Kind::Begin, &begin.to_json()[..]), (Kind::Change, &json)];
        let writer = Writer::create(disk, path, &records).map_err(written)?;
        Ok(Self { path: path.to_owned(), writer, content, open: false, recording: false })
    }

    /// Goes on where a log ends that is not damaged. What no record is made of goes.
    pub(crate) fn reopen(disk: &Arc<dyn Disk>, path: &Path, reading: &Reading) -> Result<Self, KeepError> {
        let writer = Writer::open(disk, path, reading.end, reading.count).map_err(written)?;
        let (content, open) = (reading.content.clone(), reading.open.is_some());
        Ok(Self { path: path.to_owned(), writer, content, open, recording: false })
    }

    /// Tells what the conversation has become, if that is something else than before. With `open`, tokens of an answer
    /// follow.
    pub(super) fn change(
        &mut self,
        what: &str,
        entries: &[Entry],
        earlier: &Arc<Earlier>,
        tokens: &[u32],
        began: u64,
        open: Option<Open>,
    ) -> Result<()> {
        self.recording = false;
        let keep_messages = self.content.entries.iter().zip(entries).take_while(|(a, b)| a == b).count();
        let keep_tokens = super::common_prefix(&self.content.tokens, tokens);
        let same = keep_messages == entries.len().max(self.content.entries.len())
            && keep_tokens == tokens.len().max(self.content.tokens.len())
            && *earlier == self.content.earlier
            && began == self.content.began;
        if same && open.is_none() && !self.open {
            return Ok(());
        }
        let is_open = open.is_some();
        let change = Change {
            what: what.to_owned(),
            at: nanoseconds(SystemTime::now()) / 1_000_000,
            gone: (*earlier != self.content.earlier).then(|| Gone::of(earlier, &self.content.earlier)),
            keep_messages,
            messages: entries[keep_messages..].iter().map(Said::of).collect(),
            keep_tokens,
            tokens: tokens[keep_tokens..].to_vec(),
            began: (began != self.content.began).then_some(began),
            open,
        };
        let json = serde_json::to_vec(&change).map_err(|e| self.failed(io::Error::other(e)))?;
        self.writer.append(Kind::Change, &json).map_err(|e| self.failed(e))?;
        self.content.earlier = Arc::clone(earlier);
        self.content.entries.truncate(keep_messages);
        self.content.entries.extend_from_slice(&entries[keep_messages..]);
        self.content.tokens.truncate(keep_tokens);
        self.content.tokens.extend_from_slice(&tokens[keep_tokens..]);
        self.content.began = began;
        (self.open, self.recording) = (is_open, is_open);
        Ok(())
    }

    /// Tells of a token of the answer that was begun, if one was.
    pub(super) fn token(&mut self, token: u32) -> Result<()> {
        if self.recording {
            self.writer.append(Kind::Tokens, &token.to_le_bytes()).map_err(|e| self.failed(e))?;
            self.content.tokens.push(token);
        }
        Ok(())
    }

    /// Has all that was told reach the disk.
    pub(super) fn sync(&mut self) -> Result<()> {
        self.writer.sync().map_err(|e| self.failed(e))
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::kept(&self.path, written(source))
    }
}

fn written(source: io::Error) -> KeepError {
    KeepError::Io { what: "written", source }
}

/// Keeps a copy of a damaged log beside it, under a name that nobody has yet.
pub(crate) fn set_aside(path: &Path) -> Result<PathBuf, KeepError> {
    let aside = aside(path);
    if let Err(error) = std::fs::copy(path, &aside).and_then(|_| std::fs::File::open(&aside)?.sync_all()) {
        // Half a copy would only take room.
        let _ = std::fs::remove_file(&aside);
        return Err(written(error));
    }
    Ok(aside)
}

fn aside(path: &Path) -> PathBuf {
    (1..).map(|n| path.with_extension(format!("damaged-{n}"))).find(|aside| !aside.exists()).expect("numbers don't end")
}

impl Reading {
    /// Reads a log, without changing it.
    pub(crate) fn of(path: &Path) -> Result<Self, KeepError> {
        let records = Records::read(path)?;
        let malformed = |offset, problem: &str| KeepError::Malformed { offset, problem: problem.to_owned() };
        let mut all = records.iter().peekable();
        let begin = match all.next_if(|first| first.kind == Kind::Begin) {
            Some(first) => {
                let begin = serde_json::from_slice(first.payload);
                Some(begin.map_err(|e| malformed(first.offset, &e.to_string()))?)
            }
            None if records.damaged => None,
            None => return Err(malformed(0, "it does not say whose it is")),
        };
        let mut reading = Self {
            begin,
            content: Content::default(),
            open: None,
            before: Content::default(),
            rest: records.rest(),
            is_torn: records.is_torn(),
            another: records.another,
            damaged: records.damaged,
            lost: 0,
            is_cut: false,
            end: records.end as u64,
            count: records.count(),
        };
        if records.damaged {
            let mut salvage = Salvage::from(u32::from(reading.begin.is_some()));
            all.for_each(|record| salvage.take(&record, |id| reading.is_known(id)));
            let Salvaged { content, open, before, lost, is_cut } = salvage.finish();
            return Ok(Self { content, open, before, lost, is_cut, ..reading });
        }
        for record::Record { kind, payload, offset, .. } in all {
            match kind {
                Kind::Begin => return Err(malformed(offset, "it begins a second time")),
                Kind::Change => {
                    let change = serde_json::from_slice(payload).map_err(|e| malformed(offset, &e.to_string()))?;
                    reading.apply(change).ok_or_else(|| malformed(offset, "a change of what there is not"))?;
                }
                Kind::Tokens => {
                    let ids = payload.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
                    let ids: Option<Vec<u32>> = ids.map(|id| Some(id).filter(|&id| reading.is_known(id))).collect();
                    let ids = ids.filter(|_| reading.open.is_some() && payload.len() % 4 == 0);
                    reading.content.tokens.extend(ids.ok_or_else(|| malformed(offset, "tokens out of place"))?);
                }
            }
        }
        Ok(reading)
    }

    /// What there is to say of the bytes, if these are not intact; `copy` is where they are.
    pub(crate) fn damage(&self, copy: &Path) -> Vec<Notice> {
        let damaged = self.damaged.then(|| Notice::Damaged { copy: copy.to_owned(), lost: self.lost });
        let behind = Notice::Behind { copy: copy.to_owned(), bytes: self.rest, another: self.another };
        damaged.into_iter().chain((!self.is_torn).then_some(behind)).collect()
    }

    /// Whether this can be a token, as far as is known.
    fn is_known(&self, id: u32) -> bool {
        self.begin.as_ref().is_none_or(|begin| (id as usize) < begin.vocabulary)
    }

    fn apply(&mut self, change: Change) -> Option<()> {
        let Content { entries, tokens, .. } = &self.content;
        if change.keep_messages > entries.len() || change.keep_tokens > tokens.len() {
            return None;
        }
        if change.tokens.iter().any(|&id| !self.is_known(id)) {
            return None;
        }
        if change.open.is_some() {
            self.before = self.content.clone();
        }
        if let Some(gone) = change.gone {
            self.content.earlier = Arc::new(gone.after(&self.content.earlier)?);
        }
        let Content { entries, tokens, began, .. } = &mut self.content;
        entries.truncate(change.keep_messages);
        for said in change.messages {
            entries.push(said.entry()?);
        }
        tokens.truncate(change.keep_tokens);
        tokens.extend(change.tokens);
        *began = change.began.unwrap_or(*began);
        self.open = change.open.map(|open| (open, tokens.len()));
        Some(())
    }

    /// The same conversation in texts alone, when it is not known what its tokens mean. An answer that was not finished is lost.
    pub(crate) fn without_tokens(self) -> Self {
        let mut content = if self.open.is_some() { self.before } else { self.content };
        content.tokens.clear();
        content.entries.iter_mut().for_each(|entry| (entry.generated, entry.end) = (None, 0));
        Self { content, open: None, before: Content::default(), is_cut: false, ..self }
    }

    /// The tokens of the answer that was not finished.
    pub(crate) fn unfinished(&self) -> &[u32] {
        self.open.as_ref().map_or(&[], |(_, start)| &self.content.tokens[*start..])
    }

    /// What these tokens say, if the tokenizer is still where it lay.
    pub(crate) fn unfinished_text(&self) -> Option<String> {
        let begin = self.begin.as_ref()?;
        let tokenizer = Tokenizer::from_file(begin.tokenizer_file.as_ref()?.as_ref()).ok()?;
        let is_same = hex(tokenizer.digest()) == begin.tokenizer;
        is_same.then(|| text_of(&tokenizer, self.unfinished()).ok())?.map(|(text, _)| text)
    }

    /// The conversation's messages, with those that the context no longer holds.
    pub(crate) fn messages(&self) -> impl Iterator<Item = &crate::Message> {
        let messages = self.content.entries.iter().map(|entry| &entry.message);
        let head = head(messages.clone());
        messages.clone().take(head).chain(&self.content.earlier.messages).chain(messages.skip(head))
    }
}
