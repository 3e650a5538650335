//! Drawing the next token from logits.

mod candidates;
mod min_p;
mod random;
mod repetition;
mod temperature;
mod top_k;
mod top_p;

use candidates::Candidates;
use random::Random;
use repetition::Repetition;

use crate::{Error, Generation, Result};

/// Draws tokens by the settings of a [`Generation`]. After the first token it allocates nothing.
///
/// ```
/// use anemone::{Generation, Sampler};
///
/// let mut greedy = Sampler::new(&Generation::default(), 4)?;
/// assert_eq!(greedy.sample(&[0.1, 2.0, -1.0, 2.0])?, 1);
/// # Ok::<(), anemone::Error>(())
/// ```
#[derive(Debug)]
pub struct Sampler {
    settings: Generation,
    repetition: Repetition,
    random: Random,
    candidates: Candidates,
}

impl Sampler {
    /// A sampler for logits of `vocabulary` tokens.
    ///
    /// # Errors
    /// [`Error::Setting`] when a setting is out of its range.
    pub fn new(settings: &Generation, vocabulary: usize) -> Result<Self> {
        settings.check()?;
        let drawing = settings.temperature > 0.0;
        Ok(Self {
            repetition: Repetition::new(settings.repetition_penalty, vocabulary),
            random: Random::new(settings.seed),
            candidates: Candidates::with_capacity(if drawing { vocabulary } else { 0 }),
            settings: settings.clone(),
        })
    }

    /// Lets tokens that are in the transcript count as repeated. [`sample`](Self::sample) does so for what it draws.
    pub fn observe(&mut self, tokens: &[u32]) {
        self.repetition.observe(tokens);
    }

    /// Draws a token id. A logit of −∞ rules its token out; among equals the lowest id counts as the likeliest.
    ///
    /// # Errors
    /// [`Error::Logits`] when a logit is NaN or +∞, or when all tokens are ruled out.
    pub fn sample(&mut self, logits: &[f32]) -> Result<u32> {
        let token = if self.settings.temperature > 0.0 { self.draw(logits)? } else { self.likeliest(logits)? };
        self.repetition.observe(&[token]);
        Ok(token)
    }

    fn likeliest(&self, logits: &[f32]) -> Result<u32> {
        let mut best = None;
        for (id, &logit) in logits.iter().enumerate() {
            let logit = self.repetition.apply(id, finite(id, logit)?);
            if logit > best.map_or(f32::NEG_INFINITY, |(_, best)| best) {
                best = Some((id, logit));
            }
        }
        best.map(|(id, _)| id as u32).ok_or_else(|| nothing_left(logits.len()))
    }

    fn draw(&mut self, logits: &[f32]) -> Result<u32> {
        self.candidates.clear();
        for (id, &logit) in logits.iter().enumerate() {
            let logit = self.repetition.apply(id, finite(id, logit)?);
            if logit > f32::NEG_INFINITY {
                self.candidates.push(id as u32, logit);
            }
        }
        if self.candidates.is_empty() {
            return Err(nothing_left(logits.len()));
        }
        top_k::apply(&mut self.candidates, self.settings.top_k);
        temperature::apply(&mut self.candidates, self.settings.temperature);
        top_p::apply(&mut self.candidates, self.settings.top_p);
        min_p::apply(&mut self.candidates, self.settings.min_p);
        Ok(self.candidates.pick(self.random.unit()))
    }
}

fn finite(id: usize, logit: f32) -> Result<f32> {
    if logit.is_nan() || logit == f32::INFINITY {
        return Err(Error::Logits { problem: format!("the logit of token {id} is {logit}") });
    }
    Ok(logit)
}

fn nothing_left(count: usize) -> Error {
    Error::Logits { problem: format!("all {count} of them are −∞") }
}

#[cfg(test)]
mod tests;
