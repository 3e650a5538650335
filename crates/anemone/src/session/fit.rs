//! Before a turn is computed: is there room, and if not, what the policy makes of the conversation.

use std::sync::Arc;

use super::answer::{Opening, answer};
use super::earlier::{Draft, Earlier};
use super::prompt::{Entry, Prompt};
use super::{Event, Request, Session, StopReason};
use crate::overflow::summarize::{self, Unusable};
use crate::overflow::{Overflow, Overflowed, Room, drop_oldest};
use crate::{Error, Generation, Message, Rendering, Result, Runner};

/// What came of it.
#[allow(clippy::large_enum_variant, reason = "it is taken apart at once")]
pub(super) enum Fitted {
    /// A conversation that fits, and what had to go.
    Ready { draft: Draft, prompt: Prompt, overflowed: Option<Overflowed> },
    /// The request was called off meanwhile.
    CalledOff(StopReason),
}

/// What there is to ask with.
pub(super) struct Asked<'a> {
    pub(super) request: &'a Request,
    pub(super) rendering: Rendering<'a>,
    pub(super) events: &'a mut dyn FnMut(Event<'_>),
}

impl<R: Runner> Session<R> {
    /// Makes `draft` one that fits. The transcript is as before, though not all of it may be in the cache any more.
    pub(super) fn fit(&mut self, draft: Draft, asked: &mut Asked<'_>) -> Result<Fitted> {
        let room = self.room();
        let prompt = self.prompt(&draft, &asked.rendering)?;
        let before = prompt.tokens.len();
        if before <= room.limit() {
            return Ok(Fitted::Ready { draft, prompt, overflowed: None });
        }
        let full = Error::ContextFull { needed: before, context: room.context, reserved: room.reserved };
        if self.overflow == Overflow::Stop {
            return Err(full);
        }
        if let Some(reason) = asked.request.interrupted() {
            return Ok(Fitted::CalledOff(reason));
        }
        let turns = draft.turns();
        let Some((&last, earlier)) = turns.split_last() else { return Err(full) };
        let mut alone = draft.without(last);
        alone.earlier = Arc::default();
        let needed = self.size(&alone, &asked.rendering)?;
        if needed > room.limit() {
            return Err(Error::MessageTooLong { needed, context: room.context, reserved: room.reserved });
        }
        (asked.events)(Event::Overflowing { policy: self.overflow, tokens: before });
        let mut fallback = None;
        if self.overflow == Overflow::Summarize {
            match self.summarized(&draft, &turns, room, asked)? {
                Summarized::Ready(shorter, kept) => return self.cut(draft, shorter, (before, kept), None, asked),
                Summarized::CalledOff(reason) => return Ok(Fitted::CalledOff(reason)),
                Summarized::Unusable(why) => fallback = Some(why.to_string()),
            }
        }
        // The summary of what went before is the oldest there is; it goes when turns alone do not suffice.
        let size = |dropped: usize| self.size(&draft.without(turns[dropped]), &asked.rendering);
        match drop_oldest::turns_to_drop(earlier.len(), room, 0, size)? {
            Some(dropped) => self.cut(draft.clone(), draft.without(turns[dropped]), (before, dropped), fallback, asked),
            None => self.cut(draft, alone, (before, earlier.len()), fallback, asked),
        }
    }

    /// Replaces a conversation by a shorter one, and tells of it.
    fn cut(
        &mut self,
        draft: Draft,
        shorter: Draft,
        (tokens_before, turns_dropped): (usize, usize),
        fallback: Option<String>,
        asked: &mut Asked<'_>,
    ) -> Result<Fitted> {
        let prompt = self.prompt(&shorter, &asked.rendering)?;
        let gone = draft.entries.len() - shorter.entries.len();
        let dropped: Vec<Message> =
            draft.entries[draft.head()..].iter().take(gone).map(|entry| entry.message.clone()).collect();
        let summary = shorter.earlier.summary.clone();
        let renewed = fallback.is_none() && self.overflow == Overflow::Summarize;
        let overflowed = Overflowed {
            policy: if renewed { Overflow::Summarize } else { Overflow::DropOldest },
            tokens_before,
            tokens_after: prompt.tokens.len(),
            turns_dropped,
            dropped: dropped.clone(),
            summary: summary.clone(),
            fallback,
        };
        tracing::info!(
            policy = overflowed.policy.name(),
            before = tokens_before,
            after = overflowed.tokens_after,
            turns_dropped,
            fallback = overflowed.fallback,
            "the context overflowed"
        );
        (asked.events)(Event::Overflow(&overflowed));
        let mut messages = draft.earlier.messages.clone();
        messages.extend(dropped);
        let draft = Draft { entries: shorter.entries, earlier: Arc::new(Earlier { messages, summary }) };
        Ok(Fitted::Ready { draft, prompt, overflowed: Some(overflowed) })
    }

    /// Has the model sum up the oldest turns.
    fn summarized(&mut self, draft: &Draft, turns: &[usize], room: Room, asked: &mut Asked<'_>) -> Result<Summarized> {
        let budget = summarize::budget(room.context);
        let mut bare = draft.clone();
        bare.earlier = Arc::default();
        let size = |dropped: usize| self.size(&bare.without(turns[dropped]), &asked.rendering);
        let extra = budget + summarize::MARKING;
        let dropped = drop_oldest::turns_to_drop(turns.len() - 1, room, extra, size)?;
        let Some(dropped) = dropped else { return Ok(Summarized::Unusable(Unusable::NoRoom)) };
        let older = Draft { entries: draft.entries[..turns[dropped]].to_vec(), earlier: Arc::clone(&draft.earlier) };
        let prompt = match self.request_for_summary(older, room.context, budget, asked) {
            Ok(Some(prompt)) => prompt,
            Ok(None) => return Ok(Summarized::Unusable(Unusable::NoRoom)),
            Err(Error::TemplateRefused { .. } | Error::Template { .. }) => {
                return Ok(Summarized::Unusable(Unusable::Template));
            }
            Err(error) => return Err(error),
        };
        let generation = Generation {
            max_tokens: Some(budget),
            repetition_penalty: self.model.generation.repetition_penalty,
            ..Generation::default()
        };
        let request = Request { generation, ..asked.request.clone() };
        let accepted = self.transcript.tokens().to_vec();
        // The text of a summary is no part of the answer that the caller waits for.
        let events = &mut |event: Event<'_>| match event {
            Event::Prompt { .. } => (asked.events)(event),
            Event::Token { generated, .. } => (asked.events)(Event::Summarizing { tokens: generated }),
            _ => {}
        };
        let free = Room::new(room.context, 0);
        let answered = answer(&self.model, &mut self.transcript, prompt, Opening::New, free, &request, events);
        self.transcript.recall(accepted);
        let turn = answered?.turn;
        if matches!(turn.stop_reason, StopReason::Cancelled | StopReason::Deadline) {
            return Ok(Summarized::CalledOff(turn.stop_reason));
        }
        let summary = match summarize::judge(&turn.text, turn.stop_reason, budget) {
            Ok(summary) => summary,
            Err(why) => return Ok(Summarized::Unusable(why)),
        };
        let mut shorter = draft.without(turns[dropped]);
        shorter.earlier = Arc::new(Earlier { messages: Vec::new(), summary: Some(summary) });
        // Its own tokens are not those that its text is encoded to, so it is measured where it will stand.
        let after = self.size(&shorter, &asked.rendering)?;
        if after > room.limit() {
            return Ok(Summarized::Unusable(Unusable::NoGain));
        }
        Ok(Summarized::Ready(shorter, dropped))
    }

    /// The turns that go, followed by the request to sum them up; none if that can't be made to fit. What the cache holds
    /// of the turns is used.
    fn request_for_summary(
        &mut self,
        mut older: Draft,
        context: usize,
        budget: usize,
        asked: &Asked<'_>,
    ) -> Result<Option<Vec<u32>>> {
        older.entries.push(Entry::new(Message::user(summarize::request(budget))));
        let most = context.saturating_sub(budget);
        loop {
            let tokens = self.prompt(&older, &asked.rendering)?.tokens;
            if tokens.len() <= most {
                return Ok(Some(tokens));
            }
            let share = most as f64 / tokens.len() as f64;
            let (head, turns, request) = (older.head(), older.turns(), older.entries.len() - 1);
            let lengths = older.entries[head..request].iter().map(|entry| entry.message.content.len());
            let (whole, longest) = (lengths.clone().sum::<usize>(), lengths.zip(head..).max());
            match longest {
                // A message that all but fills the context leaves no room to sum it up: its beginning must do.
                Some((length, longest)) if length > 200 && length > whole / 2 => {
                    let content = &older.entries[longest].message.content;
                    older.entries[longest].message.content = summarize::shorten(content, (0.95 * share).min(0.8));
                    older.entries[longest].generated = None;
                }
                // Of many messages the oldest are left out.
                _ if turns.len() > 2 => {
                    let few = (1.0 - share) * (turns.len() - 1) as f64;
                    older = older.without(turns[(few.ceil() as usize).clamp(1, turns.len() - 2)]);
                }
                _ => return Ok(None),
            }
        }
    }

    /// The context, as a prompt finds it.
    pub(super) fn room(&self) -> Room {
        Room::new(self.context(), self.margin())
    }

    pub(super) fn prompt(&mut self, draft: &Draft, rendering: &Rendering<'_>) -> Result<Prompt> {
        let model = &self.model;
        self.prompter.prompt(&model.tokenizer, &model.template, &draft.shown(), rendering)
    }

    /// Length of a prompt that may never be used.
    pub(super) fn size(&self, draft: &Draft, rendering: &Rendering<'_>) -> Result<usize> {
        Ok(self.rendered(draft, rendering)?.tokens.len())
    }

    /// A prompt that may never be used.
    pub(super) fn rendered(&self, draft: &Draft, rendering: &Rendering<'_>) -> Result<Prompt> {
        let model = &self.model;
        self.prompter.clone().prompt(&model.tokenizer, &model.template, &draft.shown(), rendering)
    }
}

enum Summarized {
    /// The shorter conversation, and how many turns its summary stands for.
    Ready(Draft, usize),
    Unusable(Unusable),
    CalledOff(StopReason),
}
