//! Conversations that outlive the program: `--session`, /save, /load, /fork.

use std::sync::Arc;

use anemone::{Model, PrefixStore, Reopened, SessionStore};
use anyhow::Result;

use crate::answer::Conversation;
use crate::cmd::{prefix, sessions};
use crate::terminal;

/// Where conversations are kept, and under which name this one is.
pub(super) struct Kept {
    store: SessionStore,
    prefixes: Arc<PrefixStore>,
    name: Option<String>,
}

impl Kept {
    /// Begins or opens the conversation `name`, or one that is not kept.
    pub(super) fn open(name: Option<&str>, model: Arc<Model>) -> Result<(Self, Conversation)> {
        let (store, prefixes) = (sessions::store()?, Arc::new(prefix::store()?));
        let mut session = match name {
            Some(name) => {
                let (session, reopened) = store.open(name, model)?;
                tell(name, &reopened);
                session
            }
            None => Conversation::new(model)?,
        };
        session.set_prefixes(Some(Arc::clone(&prefixes)));
        Ok((Self { store, prefixes, name: name.map(ToOwned::to_owned) }, session))
    }

    /// Keeps the cache, so that the conversation opens again without computing anything.
    pub(super) fn checkpoint(&self, session: &mut Conversation) {
        if let Err(error) = session.checkpoint() {
            terminal::complain(&format!(
                "no snapshot was made, so the next start computes the conversation anew: {error}"
            ));
        }
    }

    /// Keeps a copy of the conversation.
    pub(super) fn save(&self, name: &str, session: &Conversation) -> anemone::Result<()> {
        let mut copy = session.fork()?;
        self.store.keep(name, &mut copy)?;
        self.checkpoint(&mut copy);
        terminal::note(&format!("Saved as {name}: /load {name} or `anemone chat --session {name}` opens it."));
        Ok(())
    }

    /// Goes on with a copy; the conversation that it is of stays as it is.
    pub(super) fn fork(&mut self, name: &str, session: &mut Conversation) -> anemone::Result<()> {
        let mut copy = session.fork()?;
        self.store.keep(name, &mut copy)?;
        self.checkpoint(session);
        *session = copy;
        let old = self.name.replace(name.to_owned());
        let old = old.map_or_else(String::new, |old| format!("; {old} stays as it is"));
        terminal::note(&format!("This conversation is {name} now{old}."));
        Ok(())
    }

    /// Opens another conversation in place of this one.
    pub(super) fn load(&mut self, name: &str, session: &mut Conversation) -> anemone::Result<()> {
        if self.name.as_deref() == Some(name) {
            terminal::note(&format!("This is {name}."));
            return Ok(());
        }
        // It must be there: to begin one is another thing.
        self.store.look(name)?;
        let (mut other, reopened) = self.store.open(name, Arc::clone(session.model()))?;
        other.set_prefixes(Some(Arc::clone(&self.prefixes)));
        other.set_overflow(session.overflow(), Some(session.margin()));
        self.checkpoint(session);
        *session = other;
        self.name = Some(name.to_owned());
        tell(name, &reopened);
        Ok(())
    }
}

/// Says what was opened, and what is not as it was left.
fn tell(name: &str, reopened: &Reopened) {
    if reopened.is_new {
        terminal::note(&format!("The conversation is kept as {name}."));
    } else {
        let Reopened { messages, tokens, position, .. } = reopened;
        terminal::note(&format!("{name}: {messages} messages, {tokens} tokens, of which {position} are in the cache."));
    }
    reopened.notices.iter().for_each(|notice| terminal::note(&terminal::printable(&format!("({notice})"))));
}
