//! One conversation, kept warm.

mod answer;
mod earlier;
mod fit;
mod keep;
mod log;
mod logged;
mod prompt;
mod request;
mod rest;
mod speculate;
mod transcript;
mod turn;
mod usage;

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::SystemTime;

pub use request::{Cancel, Request};
pub use turn::{Event, StopReason, Turn};
pub use usage::Usage;

use crate::overflow::{Overflow, Room};
use crate::{Error, LanguageModel, Message, ModelRunner, Rendering, Result, Runner};
pub(crate) use log::Reading;

use answer::{Answered, Opening, answer};
use earlier::{Draft, Earlier, head, shown};
use fit::{Asked, Fitted};
use log::Open;
use logged::Kept;
use prompt::{Entry, Generated, Prompt, Prompter};
use transcript::{Transcript, common_prefix};

/// A conversation with a model, whose cache stays between turns.
///
/// The transcript, the tokens that were accepted, is what a session *is*; the cache is derived from it. A turn computes
/// only tokens after the longest common beginning of the transcript and the new prompt, whatever was edited. What the
/// model generated is never tokenized again.
///
/// A session belongs to one owner at a time. It can be sent to another thread:
///
/// ```
/// fn send<R: anemone::Runner + 'static>(session: anemone::Session<R>) {
///     std::thread::spawn(move || session.position());
/// }
/// ```
///
/// but not shared,
///
/// ```compile_fail,E0277
/// fn share<R: anemone::Runner>(session: &anemone::Session<R>) {
///     std::thread::scope(|scope| { scope.spawn(|| session.position()); });
/// }
/// ```
///
/// and while an answer is generated nothing else can be asked of it:
///
/// ```compile_fail,E0501
/// use anemone::{Request, Result, Runner, Session};
///
/// fn twice<R: Runner>(session: &mut Session<R>) -> Result<()> {
///     let request = Request::default();
///     session.say("first", &request, &mut |_| { let _ = session.say("second", &request, &mut |_| {}); })?;
///     Ok(())
/// }
/// ```
///
/// After an error the conversation is as it was before the call. An answer that is called off keeps what was said so
/// far; if nothing was, the whole turn is withdrawn.
pub struct Session<R: Runner = ModelRunner> {
    model: Arc<LanguageModel<R>>,
    transcript: Transcript<R>,
    entries: Vec<Entry>,
    /// What overflows took out.
    earlier: Arc<Earlier>,
    prompter: Prompter,
    overflow: Overflow,
    /// None for the default one.
    margin: Option<usize>,
    /// The time for templates that ask for it. It stays, or the prompt would change and the cache with it.
    began: SystemTime,
    /// The folder that it is kept in.
    kept: Option<Kept>,
    not_sync: PhantomData<Cell<()>>,
}

impl<R: Runner> Session<R> {
    /// A conversation in which nothing was said.
    ///
    /// # Errors
    /// [`Error::Model`] when the model can't make a state.
    pub fn new(model: Arc<LanguageModel<R>>) -> Result<Self> {
        Ok(Self {
            transcript: Transcript::new(&model.runner)?,
            model,
            entries: Vec::new(),
            earlier: Arc::default(),
            prompter: Prompter::default(),
            overflow: Overflow::default(),
            margin: None,
            began: SystemTime::now(),
            kept: None,
            not_sync: PhantomData,
        })
    }

    /// Says something as the user and has it answered. `events` gets the text while it comes.
    ///
    /// # Errors
    /// [`Error::ContextFull`] when the conversation would not fit and is not to be shortened ([`Overflow::Stop`]),
    /// [`Error::MessageTooLong`], [`Error::TemplateRefused`], [`Error::Setting`], [`Error::Model`], [`Error::Logits`].
    pub fn say(&mut self, text: &str, request: &Request, events: &mut dyn FnMut(Event<'_>)) -> Result<Turn> {
        let mut entries = self.entries.clone();
        entries.push(Entry::new(Message::user(text)));
        self.answer(Draft { entries, earlier: Arc::clone(&self.earlier) }, request, events)
    }

    /// Answers a whole conversation, which then is this session's. Whatever it has in common with what this session held
    /// before is reused; answers that were generated here are recognized by their text, and so is what an overflow took
    /// out of the context, which stays out.
    ///
    /// # Errors
    /// As [`Session::say`].
    pub fn generate(
        &mut self,
        messages: &[Message],
        request: &Request,
        events: &mut dyn FnMut(Event<'_>),
    ) -> Result<Turn> {
        let mut known = self.entries.iter();
        let recognize = |message: &Message| {
            let same = |entry: &&Entry| entry.message.content.trim() == message.content.trim();
            let generated = match message.role.as_str() {
                "assistant" => {
                    let mut ahead = known.clone();
                    let found = ahead.by_ref().filter(|entry| entry.generated.is_some()).find(same);
                    found.inspect(|_| known = ahead).and_then(|entry| entry.generated.clone())
                }
                _ => None,
            };
            Entry { message: message.clone(), generated, end: 0 }
        };
        let (earlier, begin) = match self.earlier.continued_by(messages) {
            Some(begin) => (Arc::clone(&self.earlier), begin),
            None => (Arc::default(), 0),
        };
        let head = if begin == 0 { 0 } else { head(messages.iter()) };
        let entries = messages[..head].iter().chain(&messages[begin..]).map(recognize).collect();
        self.answer(Draft { entries, earlier }, request, events)
    }

    /// Discards the last answer and generates another.
    ///
    /// # Errors
    /// [`Error::Conversation`] when the last message is not an answer; otherwise as [`Session::say`].
    pub fn regenerate(&mut self, request: &Request, events: &mut dyn FnMut(Event<'_>)) -> Result<Turn> {
        let mut entries = self.entries.clone();
        if entries.pop().is_none_or(|last| last.message.role != "assistant") {
            return Err(Error::Conversation { operation: "regenerate", problem: "there is no answer yet".into() });
        }
        self.answer(Draft { entries, earlier: Arc::clone(&self.earlier) }, request, events)
    }

    /// Goes on from tokens instead of messages, without a template: the text follows on that of the prompt. The
    /// conversation's messages are gone afterwards. Tokens have no turns that could go, so a prompt that does not fit is
    /// refused; no margin is kept.
    ///
    /// # Errors
    /// [`Error::ContextFull`] and as [`Session::say`].
    pub fn complete(&mut self, prompt: &[u32], request: &Request, events: &mut dyn FnMut(Event<'_>)) -> Result<Turn> {
        let room = Room::new(self.context(), 0);
        let (prompt, opening) = (prompt.to_vec(), Opening::Continuing);
        self.open_answer("complete", &Draft::default(), &prompt, Open::Completion)?;
        let answered = answer(&self.model, &mut self.transcript, prompt, opening, room, request, events);
        if answered.as_ref().is_ok_and(|answered| !answered.withdrawn) {
            self.entries.clear();
            self.earlier = Arc::default();
        }
        self.commit_answer("completed");
        Ok(answered?.turn)
    }

    fn answer(&mut self, draft: Draft, request: &Request, events: &mut dyn FnMut(Event<'_>)) -> Result<Turn> {
        let rendering = Rendering {
            add_generation_prompt: true,
            tools: request.tools.as_ref(),
            variables: request.variables.as_ref(),
            now: self.began,
        };
        let (mut draft, prompt, overflowed) = match self.fit(draft, &mut Asked { request, rendering, events })? {
            Fitted::Ready { draft, prompt, overflowed } => (draft, prompt, overflowed),
            Fitted::CalledOff(reason) => return Ok(Turn::withdrawn(reason, self.position(), self.context())),
        };
        let Prompt { tokens, tail, ends } = prompt;
        let room = self.room();
        self.open_answer("ask", &draft, &tokens, Open::Answer { before: tail.clone() })?;
        let answered = answer(&self.model, &mut self.transcript, tokens, Opening::New, room, request, events);
        let Answered { mut turn, start, ends: token_ends, .. } = match answered {
            Ok(answered) if !answered.withdrawn => answered,
            taken_back => {
                self.commit("taken back");
                return Ok(taken_back?.turn);
            }
        };
        turn.overflow = overflowed;
        let entries = &mut draft.entries;
        for (entry, end) in ends {
            entries[entry].end = end;
        }
        let generated = Generated {
            text: turn.text.clone(),
            tokens: self.transcript.tokens()[start..].to_vec(),
            ends: token_ends,
            before: tail,
        };
        entries.push(Entry {
            message: Message::assistant(turn.text.clone()),
            generated: Some(Arc::new(generated)),
            end: self.transcript.tokens().len(),
        });
        (self.entries, self.earlier) = (draft.entries, draft.earlier);
        self.commit_answer("answered");
        Ok(turn)
    }

    /// Sets, changes or removes the system message. The next turn computes what follows from it.
    pub fn set_system(&mut self, text: Option<&str>) {
        if self.entries.first().is_some_and(|first| first.message.role == "system") {
            self.entries.remove(0);
        }
        if let Some(text) = text {
            self.entries.insert(0, Entry::new(Message::system(text)));
        }
        self.commit("system");
    }

    /// Takes back the last user message and all that followed. Gives its text.
    ///
    /// # Errors
    /// [`Error::Conversation`] when there is none.
    pub fn undo(&mut self) -> Result<String> {
        let last = self.entries.iter().rposition(|entry| entry.message.role == "user");
        let last = last.ok_or(Error::Conversation { operation: "undo", problem: "nothing was said yet".into() })?;
        let text = self.entries[last].message.content.clone();
        self.rewind_to_message(last)?;
        Ok(text)
    }

    /// Goes back to the first `count` messages. What the cache holds of them stays.
    ///
    /// # Errors
    /// [`Error::Conversation`] when there are fewer.
    pub fn rewind_to_message(&mut self, count: usize) -> Result<()> {
        if count > self.entries.len() {
            let problem = format!("message {count} was asked for and there are {}", self.entries.len());
            return Err(Error::Conversation { operation: "rewind", problem });
        }
        self.entries.truncate(count);
        // What the rest renders to is what stays; a template that can't render it costs the cache, not the conversation.
        let rendering = Rendering { add_generation_prompt: false, now: self.began, ..Rendering::default() };
        let (model, shown) = (&self.model, shown(&self.entries, self.earlier.summary.as_deref()));
        let prompt = self.prompter.prompt(&model.tokenizer, &model.template, &shown, &rendering);
        let kept = prompt.map_or(0, |prompt| common_prefix(self.transcript.tokens(), &prompt.tokens));
        self.transcript.truncate(kept);
        self.commit("rewind");
        Ok(())
    }

    /// Goes back to the first `position` tokens of the transcript. Messages that end behind it are gone.
    ///
    /// # Errors
    /// [`Error::Conversation`] when the transcript is shorter.
    pub fn rewind(&mut self, position: usize) -> Result<()> {
        let length = self.transcript.tokens().len();
        if position > length {
            let problem = format!("position {position} was asked for and the transcript has {length} tokens");
            return Err(Error::Conversation { operation: "rewind", problem });
        }
        let whole = |entry: &Entry| entry.generated.is_some() && entry.end <= position;
        let system = usize::from(self.entries.first().is_some_and(|first| first.message.role == "system"));
        let kept = self.entries.iter().rposition(whole).map_or(system, |last| last + 1);
        self.entries.truncate(kept);
        self.transcript.truncate(position);
        self.commit("rewind");
        Ok(())
    }

    /// A second conversation that goes on from here by itself, sharing the model.
    ///
    /// # Errors
    /// [`Error::Model`] when the state can't be copied.
    pub fn fork(&self) -> Result<Self> {
        Ok(Self {
            model: Arc::clone(&self.model),
            transcript: self.transcript.fork(&self.model.runner)?,
            entries: self.entries.clone(),
            earlier: Arc::clone(&self.earlier),
            prompter: self.prompter.clone(),
            kept: None,
            ..*self
        })
    }

    /// Forgets the conversation but its system message. The state is a new one: nothing of the old is left.
    ///
    /// # Errors
    /// [`Error::Model`] when the model can't make a state; then nothing was forgotten.
    pub fn reset(&mut self) -> Result<()> {
        self.transcript.reset(&self.model.runner)?;
        let system = self.entries.first().is_some_and(|first| first.message.role == "system");
        self.entries.truncate(usize::from(system));
        self.earlier = Arc::default();
        self.prompter = Prompter::default();
        self.began = SystemTime::now();
        self.commit("reset");
        Ok(())
    }

    /// What happens when the conversation outgrows the context, and how many tokens of it stay free for each answer:
    /// [`Overflow::default_margin`] if it is none.
    pub fn set_overflow(&mut self, overflow: Overflow, margin: Option<usize>) {
        self.overflow = overflow;
        self.margin = margin;
    }

    /// What happens when the conversation outgrows the context.
    pub fn overflow(&self) -> Overflow {
        self.overflow
    }

    /// How many tokens of the context stay free for each answer.
    pub fn margin(&self) -> usize {
        self.margin.unwrap_or_else(|| Overflow::default_margin(self.context()))
    }

    /// What stands for the turns that an overflow took out of the context, if they were summed up.
    pub fn summary(&self) -> Option<&str> {
        self.earlier.summary.as_deref()
    }

    /// The messages that overflows took out of the context: those between the system message and the rest.
    pub fn dropped(&self) -> &[Message] {
        &self.earlier.messages
    }

    /// The model.
    pub fn model(&self) -> &Arc<LanguageModel<R>> {
        &self.model
    }

    /// The conversation so far, as far as the context holds it; see [`Session::dropped`].
    pub fn messages(&self) -> impl ExactSizeIterator<Item = &Message> {
        self.entries.iter().map(|entry| &entry.message)
    }

    /// The tokens that were accepted.
    pub fn transcript(&self) -> &[u32] {
        self.transcript.tokens()
    }

    /// How many tokens of the transcript the cache holds.
    pub fn position(&self) -> usize {
        self.transcript.position()
    }

    /// How many tokens it can hold.
    pub fn context(&self) -> usize {
        self.model.runner.context()
    }
}

impl<R: Runner> std::fmt::Debug for Session<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("messages", &self.entries.len())
            .field("transcript", &self.transcript.tokens().len())
            .field("position", &self.position())
            .field("context", &self.context())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
