//! What a log tells of which some records were damaged.
//!
//! A change tells what comes after so many messages and tokens, so a lost record leaves a hole of known length, unless a
//! later one replaces what was in it.

use std::sync::Arc;

use super::change::{Change, Open};
use super::record::{Kind, Record};
use super::{Content, Earlier, Entry};
use crate::Message;

/// What stands for a message that is lost.
const LOST: &str = "[lost: this message was in a damaged part of the log]";
/// A hole of more messages is none.
const MOST_LOST: usize = 1 << 16;

/// What is known so far.
#[derive(Clone, Default)]
pub(super) struct Salvage {
    /// None where a message is lost.
    entries: Vec<Option<Entry>>,
    earlier: Arc<Earlier>,
    /// How many messages are lost of those that the context no longer holds.
    lost_earlier: usize,
    /// The transcript, or its beginning.
    tokens: Vec<u32>,
    /// Whether what follows on that is lost.
    is_cut: bool,
    began: u64,
    open: Option<Opened>,
    /// The number of the next record.
    next: u32,
}

/// An answer that was begun.
#[derive(Clone)]
struct Opened {
    open: Open,
    before: Box<Salvage>,
    said: Vec<u32>,
    /// Whether what follows on that is lost.
    is_cut: bool,
}

/// What was recovered.
#[derive(Debug, Default)]
pub(super) struct Salvaged {
    pub(super) content: Content,
    /// As in a [`Reading`](super::Reading).
    pub(super) open: Option<(Open, usize)>,
    pub(super) before: Content,
    /// How many messages are lost.
    pub(super) lost: usize,
    /// Whether the tokens are not those of the messages.
    pub(super) is_cut: bool,
}

impl Salvage {
    /// Nothing yet; the first record has this number if none is lost.
    pub(super) fn from(next: u32) -> Self {
        Self { next, ..Self::default() }
    }

    /// Takes over what a record tells. `is_known` tells tokens from what can't be any.
    pub(super) fn take(&mut self, record: &Record<'_>, is_known: impl Fn(u32) -> bool) {
        if record.number != self.next {
            self.missed();
        }
        self.next = record.number.saturating_add(1);
        match record.kind {
            Kind::Begin => {}
            Kind::Change => match serde_json::from_slice::<Change>(record.payload) {
                Ok(change) if change.keep_messages <= self.entries.len() + MOST_LOST => self.change(change, is_known),
                _ => self.missed(),
            },
            Kind::Tokens => {
                let ids = record.payload.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
                if let Some(open) = self.open.as_mut().filter(|open| !open.is_cut) {
                    open.said.extend(ids.take_while(|&id| is_known(id)));
                }
            }
        }
    }

    /// Something is lost.
    fn missed(&mut self) {
        if let Some(open) = &mut self.open {
            open.is_cut = true;
        }
    }

    fn change(&mut self, change: Change, is_known: impl Fn(u32) -> bool) {
        if let Some(open) = self.open.take().filter(|_| !self.is_cut) {
            self.tokens.extend(open.said);
        }
        let before = change.open.is_some().then(|| Box::new(self.clone()));
        if let Some(gone) = change.gone {
            let (earlier, lost) = gone.after_what_is_left(&self.earlier);
            (self.earlier, self.lost_earlier) = (Arc::new(earlier), lost);
        }
        self.entries.resize(change.keep_messages, None);
        self.entries.extend(change.messages.into_iter().map(super::change::Said::entry));
        self.is_cut = change.keep_tokens > self.tokens.len();
        if !self.is_cut {
            self.tokens.truncate(change.keep_tokens);
            self.tokens.extend(change.tokens.into_iter().take_while(|&id| is_known(id)));
        }
        self.began = change.began.unwrap_or(self.began);
        let opened = |open, before| Opened { open, before, said: Vec::new(), is_cut: false };
        self.open = change.open.zip(before).map(|(open, before)| opened(open, before));
    }

    pub(super) fn finish(mut self) -> Salvaged {
        let open = self.open.take();
        let before = open.as_ref().map(|open| open.before.clone().closed().0).unwrap_or_default();
        let is_cut = self.is_cut;
        let (mut content, lost) = self.closed();
        // A completion has no messages: what is known of its tokens is all there is.
        if is_cut && content.entries.is_empty() {
            return Salvaged { content, lost, ..Salvaged::default() };
        }
        let start = content.tokens.len();
        let open = open.map(|open| {
            content.tokens.extend(open.said);
            (open.open, start)
        });
        Salvaged { content, open, before, lost, is_cut }
    }

    /// The conversation, with what stands for lost messages, and how many these are.
    fn closed(self) -> (Content, usize) {
        let lost = self.lost_earlier + self.entries.iter().filter(|entry| entry.is_none()).count();
        let mut entries: Vec<Entry> = Vec::with_capacity(self.entries.len());
        // From the end on: whose a lost message was shows from the one after it.
        for entry in self.entries.into_iter().rev() {
            let stands_for = |next: &Entry| match next.message.role.as_str() {
                "user" => Message::assistant(LOST),
                _ => Message::user(LOST),
            };
            entries.extend(entry.or_else(|| entries.last().map(|next| Entry::new(stands_for(next)))));
        }
        // What comes before the user's first message was the system's.
        if entries.last().is_some_and(|first| first.message == Message::assistant(LOST)) {
            entries.pop();
        }
        entries.reverse();
        (Content { entries, earlier: self.earlier, tokens: self.tokens, began: self.began }, lost)
    }
}
