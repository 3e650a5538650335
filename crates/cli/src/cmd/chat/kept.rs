//! Conversations that outlive the program: `--session`, /save, /load, /fork.

use std::sync::Arc;

use anemone::{Model, Reopened, SessionStore};
use anemone_cli::units::{count, counted};
use anyhow::Result;

use crate::answer::Conversation;
use crate::cmd::{prefix, sessions};
use crate::terminal;

/// Where conversations are kept, and under which name this one is.
pub(super) struct Kept {
    store: SessionStore,
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
        session.set_prefixes(Some(prefixes));
        Ok((Self { store, name: name.map(ToOwned::to_owned) }, session))
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
        terminal::note(&format!("Saved as {name}, which stays as it is now: /load {name} goes on from it."));
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

    /// Goes on from another conversation, in this one: what was loaded stays as it is.
    pub(super) fn load(&mut self, name: &str, session: &mut Conversation) -> anemone::Result<()> {
        if self.name.as_deref() == Some(name) {
            terminal::note(&format!("This is {name}, as far as it has come; nothing was loaded."));
            return Ok(());
        }
        let (copy, reopened) = self.store.copy(name, Arc::clone(session.model()))?;
        let replaced = match &self.name {
            Some(open) if !goes_on_from(&copy, session) => Some(self.set_aside(open, session)?),
            _ => None,
        };
        session.replace_with(copy)?;
        tell(name, &reopened);
        let goes_on = match &self.name {
            Some(open) => format!("The conversation goes on as {open}; {name} stays as it is."),
            None => format!(
                "The conversation goes on here and is not kept; {name} stays as it is. /fork NAME keeps it from now on, \
                 `anemone chat --session {name}` goes on in {name} itself."
            ),
        };
        terminal::note(&goes_on);
        if let (Some(open), Some(replaced)) = (&self.name, replaced) {
            terminal::note(&format!("What {open} was before is kept as {replaced}."));
        }
        Ok(())
    }

    /// Keeps a copy under a name that nobody has yet, which is given.
    fn set_aside(&self, name: &str, session: &Conversation) -> anemone::Result<String> {
        self.store.keep_beside(name, &mut session.fork()?)
    }
}

/// Whether a conversation has all that another has.
fn goes_on_from(longer: &Conversation, shorter: &Conversation) -> bool {
    let said = |session: &Conversation| session.dropped().iter().chain(session.messages()).cloned().collect::<Vec<_>>();
    said(longer).starts_with(&said(shorter))
}

/// Says what was opened, and what is not as it was left.
fn tell(name: &str, reopened: &Reopened) {
    if reopened.is_new {
        terminal::note(&format!("The conversation is kept as {name}."));
    } else {
        let Reopened { messages, tokens, position, .. } = reopened;
        let (messages, tokens) = (counted(*messages, "message"), counted(*tokens, "token"));
        terminal::note(&format!("{name}: {messages}, {tokens}, {} of them in the cache.", count(*position as u64)));
    }
    reopened.notices.iter().for_each(|notice| terminal::note(&terminal::printable(&format!("({notice})"))));
}
