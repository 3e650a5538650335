//! Generating one answer after a prompt.

use std::time::{Duration, Instant};

use super::transcript::Transcript;
use super::{Event, Request, StopReason, Turn};
use crate::overflow::{Room, stop};
use crate::{Detokenizer, Error, LanguageModel, Result, Runner, Sampler};

/// An answer that was generated: its text is `turn.text`, its tokens are at the transcript's end.
pub(super) struct Answered {
    pub(super) turn: Turn,
    /// Where in the transcript the answer begins.
    pub(super) start: usize,
    /// For each token of the answer in the transcript, where in the text it ends.
    pub(super) ends: Vec<usize>,
    /// It was called off before its first token; the transcript is as it was before.
    pub(super) withdrawn: bool,
}

/// Whether a text begins or goes on with the answer.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Opening {
    New,
    Continuing,
}

/// Reads `prompt` as far as it is not in the cache, and generates. On an error the transcript is as it was before.
pub(super) fn answer<R: Runner>(
    model: &LanguageModel<R>,
    transcript: &mut Transcript<R>,
    prompt: Vec<u32>,
    opening: Opening,
    room: Room,
    request: &Request,
    events: &mut dyn FnMut(Event<'_>),
) -> Result<Answered> {
    stop::admit(prompt.len(), room)?;
    if prompt.is_empty() {
        return Err(Error::Conversation { operation: "generate", problem: "the prompt has no tokens".into() });
    }
    let vocabulary = model.runner.vocabulary();
    if let Some(id) = prompt.iter().find(|&&id| id as usize >= vocabulary) {
        let problem = format!("token {id} is not in the model's vocabulary of {vocabulary}; does the tokenizer fit?");
        return Err(Error::Conversation { operation: "generate", problem });
    }
    let mut sampler = Sampler::new(&request.generation, vocabulary)?;
    sampler.observe(&prompt);
    let stop = &request.generation.stop;
    let detokenizer = match opening {
        Opening::New => Detokenizer::new(&model.tokenizer, stop)?,
        Opening::Continuing => Detokenizer::continuing(&model.tokenizer, stop)?,
    };

    let start = prompt.len();
    let (reused, before) = transcript.lay(&model.runner, prompt);
    let work = Work { model, transcript, request, events, start, reused };
    let answered = work.run(sampler, detokenizer);
    if !matches!(answered, Ok(Answered { withdrawn: false, .. })) {
        transcript.restore(before);
    }
    let mut answered = answered?;
    answered.turn.position = transcript.position();
    Ok(answered)
}

struct Work<'a, R: Runner> {
    model: &'a LanguageModel<R>,
    transcript: &'a mut Transcript<R>,
    request: &'a Request,
    events: &'a mut dyn FnMut(Event<'_>),
    start: usize,
    reused: usize,
}

impl<R: Runner> Work<'_, R> {
    fn run(mut self, mut sampler: Sampler, mut detokenizer: Detokenizer<'_>) -> Result<Answered> {
        let (began, guessed) = (Instant::now(), self.transcript.guessed());
        let mut first = None;
        let mut text = String::new();
        let stop_reason = match self.read_prompt()? {
            Some(reason) => reason,
            None => self.generate(&mut sampler, &mut detokenizer, &mut text, &mut first)?,
        };
        let ended = Instant::now();
        let rest = detokenizer.finish()?;
        emit(rest, &mut text, self.events);

        let tokens_generated = self.transcript.tokens().len() - self.start;
        let ends = match stop_reason {
            StopReason::StopString => self.cut_to_text(&text, detokenizer.ends())?,
            _ => detokenizer.ends().to_vec(),
        };
        let called_off = matches!(stop_reason, StopReason::Cancelled | StopReason::Deadline);
        let turn = Turn {
            text,
            tokens_reused: self.reused,
            tokens_computed: self.transcript.position().min(self.start) - self.reused,
            tokens_generated,
            tokens_drafted: self.transcript.guessed().drafted - guessed.drafted,
            tokens_accepted: self.transcript.guessed().accepted - guessed.accepted,
            first_token: first.map_or(Duration::ZERO, |first: Instant| first - began),
            per_token: match (first, u32::try_from(tokens_generated)) {
                (Some(first), Ok(count @ 2..)) => (ended - first) / (count - 1),
                _ => Duration::ZERO,
            },
            position: self.transcript.position(),
            context: self.model.runner.context(),
            stop_reason,
            overflow: None,
        };
        Ok(Answered { turn, start: self.start, ends, withdrawn: called_off && tokens_generated == 0 })
    }

    /// Reads what of the prompt is not in the cache; gives why it was interrupted, if it was.
    fn read_prompt(&mut self) -> Result<Option<StopReason>> {
        loop {
            let done = self.transcript.position();
            (self.events)(Event::Prompt { done, total: self.start });
            if done == self.start {
                return Ok(None);
            }
            if let Some(reason) = self.request.interrupted() {
                return Ok(Some(reason));
            }
            self.transcript.feed(&self.model.runner, self.model.runner.chunk())?;
        }
    }

    fn generate(
        &mut self,
        sampler: &mut Sampler,
        detokenizer: &mut Detokenizer<'_>,
        text: &mut String,
        first: &mut Option<Instant>,
    ) -> Result<StopReason> {
        let most = self.request.generation.max_tokens.unwrap_or(usize::MAX);
        for generated in 1.. {
            if let Some(reason) = self.request.interrupted() {
                return Ok(reason);
            }
            let token = sampler.sample(self.transcript.logits())?;
            first.get_or_insert_with(Instant::now);
            // The template closes the answer, so the token that ends it must not be in the transcript as well.
            if self.model.end_tokens.contains(&token) {
                return Ok(StopReason::Eos);
            }
            self.transcript.accept(token)?;
            (self.events)(Event::Token { id: token, generated });
            emit(detokenizer.push(token)?, text, self.events);
            if detokenizer.stopped().is_some() {
                return Ok(StopReason::StopString);
            }
            if generated == most {
                return Ok(StopReason::MaxTokens);
            }
            if self.transcript.tokens().len() == self.model.runner.context() {
                return Ok(StopReason::ContextFull);
            }
            // What would not be generated any more need not be guessed.
            self.transcript.feed_generated(&self.model.runner, most - generated - 1)?;
        }
        unreachable!("the context is full before the count is")
    }

    /// Takes the stop string, and what came with it, out of the transcript again, so that it holds what the text says.
    fn cut_to_text(&mut self, text: &str, ends: &[usize]) -> Result<Vec<usize>> {
        let whole = ends.partition_point(|&end| end <= text.len());
        let mut ends = ends[..whole].to_vec();
        self.transcript.truncate(self.start + whole);
        // A token that holds both text and the beginning of the stop string is replaced by tokens of its text.
        let rest = &text[ends.last().copied().unwrap_or(0)..];
        if !rest.is_empty() {
            let tokens = self.model.tokenizer.encode_continuing(rest)?;
            if self.transcript.tokens().len() + tokens.len() <= self.model.runner.context() {
                self.transcript.append(&tokens);
                ends.extend(tokens.iter().map(|_| text.len()));
            }
        }
        Ok(ends)
    }
}

fn emit(piece: &str, text: &mut String, events: &mut dyn FnMut(Event<'_>)) {
    if !piece.is_empty() {
        text.push_str(piece);
        events(Event::Text(piece));
    }
}
