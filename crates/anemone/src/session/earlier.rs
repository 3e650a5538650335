//! What of a conversation the context no longer holds, and where its turns begin.

use std::sync::Arc;

use super::prompt::Entry;
use crate::Message;
use crate::overflow::summarize;

/// The messages that overflows took out of the context, and the summary that stands for them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Earlier {
    pub(super) messages: Vec<Message>,
    pub(super) summary: Option<String>,
}

/// A conversation whose next answer is wanted.
#[derive(Clone, Default)]
pub(super) struct Draft {
    pub(super) entries: Vec<Entry>,
    pub(super) earlier: Arc<Earlier>,
}

impl Draft {
    /// How many messages at the beginning always stay.
    pub(super) fn head(&self) -> usize {
        head(self.entries.iter().map(|entry| &entry.message))
    }

    /// Where each turn begins.
    pub(super) fn turns(&self) -> Vec<usize> {
        let head = self.head();
        let begins = |&index: &usize| index == head || self.entries[index].message.role == "user";
        (head..self.entries.len()).filter(begins).collect()
    }

    /// The same without what lies between the head and the entry `from`; with what it had of a summary.
    pub(super) fn without(&self, from: usize) -> Self {
        let head = self.head();
        let entries = self.entries[..head].iter().chain(&self.entries[from.max(head)..]).cloned().collect();
        Self { entries, earlier: Arc::clone(&self.earlier) }
    }

    /// What the template is given: the summary is put before the first of the user's messages.
    pub(super) fn shown(&self) -> Vec<Entry> {
        shown(&self.entries, self.earlier.summary.as_deref())
    }
}

/// Entries with a summary put before the first of the user's messages. That works with every template, and what comes
/// before that message stays in the cache.
pub(super) fn shown(entries: &[Entry], summary: Option<&str>) -> Vec<Entry> {
    let mut entries = entries.to_vec();
    let first = entries.iter_mut().find(|entry| entry.message.role == "user");
    if let (Some(summary), Some(first)) = (summary, first) {
        first.message.content = summarize::mark(summary, &first.message.content);
    }
    entries
}

/// How many messages at the beginning instruct the model.
pub(super) fn head<'m>(messages: impl Iterator<Item = &'m Message>) -> usize {
    messages.take_while(|message| matches!(message.role.as_str(), "system" | "developer")).count()
}

impl Earlier {
    /// Where in a whole conversation, given from outside, the context's part of it begins: behind the head and all that
    /// overflows took out, if it has just that and goes on after it.
    pub(super) fn continued_by(&self, messages: &[Message]) -> Option<usize> {
        let head = head(messages.iter());
        let end = head + self.messages.len();
        let same = |(a, b): (&Message, &Message)| a.role == b.role && a.content.trim() == b.content.trim();
        let known = messages.get(head..end)?.iter().zip(&self.messages).all(same);
        (known && !self.messages.is_empty() && messages.get(end).is_some_and(|next| next.role == "user")).then_some(end)
    }
}
